"""Shapes and types in signatures are true: games, played with jaxtyping and beartype checking every call.

In a process of its own, as other tests give wrong types on purpose, to read the library's own words for them.
"""

import subprocess
import sys
import textwrap

SCRIPT = textwrap.dedent("""
    import sys, types
    import beartype, jax, jaxtyping
    checker = types.ModuleType("checker")
    checker.check = beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))  # an int is a float
    sys.modules["checker"] = checker
    with jaxtyping.install_import_hook("cocoax", "checker.check"):
        import cocoax as cx
        from cocoax.testing import problems
        for part in (cx, cx.domains, cx.primal, cx.dual, cx.learners):
            for name in part.__all__:
                getattr(part, name)

    key = jax.random.key(0)
    problem, rounds = problems.product(key=key, rounds=6)
    cx.play(problem, cx.learners.Blocks(cx.primal.OCG()), rounds, key=key)
    problem, rounds = problems.simplex(key=key, rounds=6)
    for learner in (cx.learners.Blocks(cx.primal.ORGFW()), cx.learners.PDMFW(), cx.learners.DPP()):
        game = cx.play(problem, learner, rounds, key=key, keep_decisions=True)
    best = cx.hindsight(problem, rounds)
    game.regret(best), game.score(best), game.table(best)
    try:
        cx.play(problem, "no learner", rounds, key=key)
    except jaxtyping.TypeCheckError:
        print("checked")
""")


def test_every_call_of_a_few_games_has_the_types_it_says():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "checked\n"  # or nothing was
