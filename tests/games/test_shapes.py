"""Shapes and types in signatures are true: jaxtyping and beartype check every call of games with all learners.

In a process of its own, as other tests give wrong types on purpose, to read the library's own words for them. Most
games are only traced, which calls the same functions; without x64, as users have it, and with strict promotion.
"""

import os
import subprocess
import sys
import textwrap

import pytest

SCRIPT = textwrap.dedent("""
    import inspect, sys, types
    import beartype, jax, jaxtyping
    checker = types.ModuleType("checker")
    checker.check = beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))  # an int is a float
    sys.modules["checker"] = checker
    with jaxtyping.install_import_hook("cocoax", "checker.check"):
        import cocoax as cx
        from cocoax.learners.pricing import AbstractPricing
        from cocoax.testing import problems
        for part in (cx, cx.domains, cx.primal, cx.dual, cx.learners):
            for name in part.__all__:
                getattr(part, name)

    def defaults(part, base):
        classes = [getattr(part, name) for name in part.__all__ if inspect.isclass(getattr(part, name))]
        for cls in classes:
            parameters = inspect.signature(cls).parameters.values()
            needed = any(p.default is p.empty and p.kind is not p.VAR_KEYWORD for p in parameters)
            if issubclass(cls, base) and not inspect.isabstract(cls) and not needed:
                yield cls()

    key = jax.random.key(0)
    learners = [
        *defaults(cx.learners, cx.learners.AbstractLearner),
        *(cx.learners.Blocks(primal) if primal.has_theorem else cx.learners.PrimalDual(primal, cx.dual.RobustPI())
          for primal in defaults(cx.primal, cx.primal.AbstractPrimal)),
        *(cx.learners.PrimalDual(cx.primal.OCG(), rule) for rule in defaults(cx.dual, cx.dual.AbstractDual)
          if rule.is_tuned),
        cx.learners.Castiglioni(0.5), cx.learners.FWCSOA(0.5), cx.learners.Anytime(cx.learners.PDOFW(), capacity=64),
    ]
    assert len(learners) > 40
    few = [cx.learners.Auto(), cx.learners.PDMFW(), cx.learners.DPP()]
    box = cx.domains.Box([-1.0, -1.0, -1.0], [1.0, 1.0, 1.0])
    small = [problems.SMALL[name](key=key, rounds=6) for name in ("product", "simplex", "nuclear")]
    for problem, rounds in [*small, problems.tracking(box, key=key, rounds=6)]:
        # a product has all kinds of domains; the others are for who is left
        playing, learners = [*learners, *few], []
        for learner in playing:
            try:
                jax.eval_shape(lambda key: cx.play(problem, learner, rounds, key=key, keep_decisions=True), key)
            except cx.CocoaxError:  # does not play on this problem
                learners.append(learner)
    need_requests = (AbstractPricing, cx.learners.Hinted)
    assert learners and all(isinstance(each, need_requests) for each in learners), learners
    problem, rounds = problems.simplex(key=key, rounds=6)
    game = cx.play(problem, cx.learners.Auto(), rounds, key=key, keep_decisions=True)
    best = cx.hindsight(problem, rounds)
    game.regret(best), game.score(best), game.table(best)
    try:
        cx.play(problem, "no learner", rounds, key=key)
    except jaxtyping.TypeCheckError:
        print("checked")
""")
STRICT = {"JAX_NUMPY_DTYPE_PROMOTION": "strict", "JAX_NUMPY_RANK_PROMOTION": "raise"}


@pytest.mark.slow
def test_every_call_of_games_with_all_learners_has_the_types_it_says():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=os.environ | STRICT)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "checked\n"  # or nothing was
