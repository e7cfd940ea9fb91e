"""Every primal, dual and learner keeps its contract; a new one is found by itself."""

import dataclasses
import functools
import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_tools import slow_but

import cocoax as cx
from cocoax import baselines, dual, learners, primal
from cocoax.learners.pricing import AbstractPricing
from cocoax.testing import check_dual, check_learner, check_primal, problems
from cocoax.testing.learners import check_game
from cocoax.testing.played import with_names_and_gradients
from cocoax.testing.require import kinds

# They answer requests: test_auto_price, test_mirror_descent, test_budgeted, test_pacing, test_bandits check them
OF_REQUESTS = {
    learners.AdaptivePacing,
    learners.AutoPrice,
    learners.BanditPrice,
    learners.Budgeted,
    learners.DualMirrorDescent,
    learners.Hinted,
    learners.PIDPacing,
    learners.RegularizedMirrorDescent,
    learners.Resolving,
    learners.Throttling,
}
# They play on some sets only: test_own_sets checks them
OF_SETS = {
    primal.DiagonalNewton,
    primal.EntropicNewton,
    primal.ExponentiatedGradient,
    primal.Mixture,
    primal.OnlineNewton,
    primal.Within,
    learners.AutoFlow,
    learners.AutoGrowth,
    learners.AutoNewton,
}
ROUNDS = 20  # as many as vmap must equal a loop for


def noisy(round, key):
    """A mini-batch: the round with unbiased noise."""
    return jax.tree.map(lambda leaf: leaf + 0.1 * jax.random.normal(key, leaf.shape, leaf.dtype), round)


def classes(module, base):
    """The public concrete classes of a namespace."""
    return {
        name: cls
        for name, cls in inspect.getmembers(module, inspect.isclass)
        if issubclass(cls, base) and not inspect.isabstract(cls) and cls not in OF_REQUESTS | OF_SETS
    }


def defaults(module, base):
    """Those that need no arguments."""
    found = {}
    for name, cls in classes(module, base).items():
        required = [p for p in inspect.signature(cls).parameters.values() if p.default is p.empty]
        if not required:
            found[name] = cls()
    return found


PRIMALS = defaults(primal, primal.AbstractPrimal) | {
    "SFTPL smooth": primal.SFTPL(smooth=True),
    "MORGFW sampled": primal.MORGFW(noisy),
}
PERTURBED = {
    f"{cls.__name__} {name}": cls(perturbation=name)
    for cls in (primal.FTPL, primal.MFW)
    for name in ("cube", "centred")
}
DUALS = defaults(dual, dual.AbstractDual) | {
    "RegularizedAscent": dual.RegularizedAscent(1.0, 0.1),
    "Penalty": dual.Penalty(0.5),
    "BoundedAscent": dual.BoundedAscent(2.0, 0.1),
    "Hard": dual.Hard(dual.Penalty(0.5)),
    "ExponentialPotential": dual.ExponentialPotential(0.5),
    "DriftPotential": dual.DriftPotential(0.5, 0.1, 0.2),
}
LEARNERS = {
    **{f"Blocks {name}": learners.Blocks(method) for name, method in PRIMALS.items()},
    **{f"PrimalDual {name}": learners.PrimalDual(primal.OCG(), rule) for name, rule in DUALS.items()},
    **{
        name: learner
        for package in (learners, baselines)
        for name, learner in defaults(package, learners.AbstractLearner).items()
        if name != "TrackedPI2" and not isinstance(learner, AbstractPricing)  # these need requests, and have own tests
    },
    "Castiglioni": baselines.Castiglioni(0.5),
    "FWCSOA": baselines.FWCSOA(0.5),
    "Capped": learners.Capped(baselines.PDOGD(), safe=[0.25, 0.25, 0.25, 0.25], limit=1.0, bound=3.0),
    "Anytime": learners.Anytime(learners.PDOFW(), first=3, capacity=64),
    "Certified": learners.Certified(baselines.PDOGD()),
    "Guarded": learners.Guarded(baselines.PDOGD(), learners.LyapStoch(), factor=0.1),  # it switches
}
VARIANTS = {
    **{f"Blocks {name}": learners.Blocks(method) for name, method in PERTURBED.items()},
    **{f"PDMFW {name}": learners.PDMFW(perturbation=name) for name in ("centred", "ball")},
}
# These take longest. The fast run checks their primals, plays one game of most in float64 and traces one in float32
LONG = {f"Blocks {name}" for name in ("AdaMFW", "MORGFW", "MORGFW sampled", "OSPF", "SFTPL", "SFTPL smooth")}
# Their parts are checked whole in other learners; these only play one game
PLAYED = LONG | {
    *(f"Blocks {name}" for name in ("AdaOFW", "MetaOGD", "MFW", "OFW", "OGD")),
    *(f"PrimalDual {name}" for name in DUALS if name != "RegularizedAscent"),
}
# They only choose numbers for parts that others have, and have no loop of their own
CHOOSING = {"AdaptivePDOGD", "Castiglioni", "Liakopoulos", "LyapStoch", "PDOFW", "PDOGD", "YuanLamperski"}
WHOLE = [name for name in LEARNERS if name not in PLAYED | CHOOSING]
ON_PYTREES = [name for name in LEARNERS if not name.startswith(("Blocks", "Capped", "EXP3"))] + [
    "Blocks OCG",
    "Blocks SFTPL",
]
PLAYED_ON_PYTREES = [
    "PDMFW",
    "Auto",
    "TrackedPI",
    "Valls",
    "Yi",
    "Stay",
    "Anytime",
    "Certified",
    "Guarded",
    "Blocks OCG",
]
ON_MATRICES = ["Blocks OCG", "Blocks FTPL", "PDMFW", "DPP", "Auto"]
USES_COINS = {
    "Anytime": False,
    "PDOGD": False,
    "AdaptivePDOGD": False,
    "DPP": False,
    "EXP3": True,
    "Stay": False,
} | dict.fromkeys(
    (
        "Auto",
        "Capped",
        "Castiglioni",
        "Certified",
        "DPPMirror",
        "FWCSOA",
        "Guarded",
        "Liakopoulos",
        "OSPHG",
        "RECOO",
        "Valls",
        "Yi",
        "YuNeely",
        "YuanLamperski",
    ),
    False,
)


@functools.cache
def small(name):
    return problems.SMALL[name](key=jax.random.key(1), rounds=ROUNDS)


@pytest.mark.parametrize(
    "module, base, known",
    [
        (primal, primal.AbstractPrimal, PRIMALS),
        (dual, dual.AbstractDual, DUALS),
        (learners, learners.AbstractLearner, LEARNERS),
    ],
    ids=["primals", "duals", "learners"],
)
def test_every_public_class_is_checked(module, base, known):
    assert set(classes(module, base).values()) <= {type(part) for part in known.values()}


def parts(module):
    """The classes of a module and of all modules in it."""
    yield type(module)
    for field in dataclasses.fields(module):
        value = getattr(module, field.name)
        if isinstance(value, eqx.Module):
            yield from parts(value)


def test_the_fast_run_checks_every_public_class_whole():
    """As a learner, or as the primal or the dual of one; but for the longest, and for those that only choose parts."""
    problem, _ = small("simplex")
    checked = {type(LEARNERS[name]) for name in CHOOSING}
    assert not any({"init", "observe", "decision", "decide"} & vars(cls).keys() for cls in checked)
    checked |= {type(LEARNERS[name].primal) for name in LONG}  # pyright: ignore[reportAttributeAccessIssue]
    for learner in (LEARNERS[name] for name in WHOLE):
        checked |= set(parts(learner))
        if hasattr(learner, "rule"):
            checked |= set(parts(learner.rule(problem, jnp.asarray(ROUNDS))))
    for module, base in (
        (primal, primal.AbstractPrimal),
        (dual, dual.AbstractDual),
        (learners, learners.AbstractLearner),
        (baselines, learners.AbstractLearner),
    ):
        assert set(classes(module, base).values()) <= checked


# without "MORGFW", whose samples are all that "MORGFW sampled" has more, and without perturbations that are transcribed
@pytest.mark.parametrize("name", slow_but([name for name in PRIMALS if name != "MORGFW"], PRIMALS | PERTURBED))
def test_primals_keep_their_contract(name):
    check_primal((PRIMALS | PERTURBED)[name], key=jax.random.key(0))


@pytest.mark.parametrize("name", DUALS)
def test_duals_keep_their_contract(name):
    check_dual(DUALS[name], key=jax.random.key(0))


@pytest.mark.parametrize("name", slow_but(WHOLE, LEARNERS))
def test_learners_keep_their_contract(name):
    problem, rounds = small("simplex")
    check_learner(LEARNERS[name], key=jax.random.key(0), problem=problem, rounds=rounds, random=USES_COINS.get(name))


GAMES = [*VARIANTS, *(name for name in LEARNERS if name in PLAYED | CHOOSING)]
# In the fast run, of the longest those with the most parts, and one perturbation in place of another: the perturbations
# differ in one line, which theorems and transcriptions check. All parts of the others are checked whole there
FAST_GAMES = ["Blocks AdaMFW", "Blocks MORGFW sampled", "Blocks OSPF", "Blocks SFTPL smooth", "Blocks FTPL centred"]
FAST_GAMES += sorted(CHOOSING)


@pytest.mark.parametrize("name", slow_but(FAST_GAMES, GAMES))
def test_variants_keep_the_contract_of_games(name):
    check_game((LEARNERS | VARIANTS)[name], *small("simplex"), key=jax.random.key(0), random=USES_COINS.get(name))


@pytest.mark.parametrize("name", slow_but(PLAYED_ON_PYTREES, ON_PYTREES))
def test_decisions_may_be_pytrees(name):
    check_game(LEARNERS[name], *small("product"), key=jax.random.key(0), random=USES_COINS.get(name))


@pytest.mark.parametrize("name", ON_PYTREES)
def test_games_of_pytrees_can_be_traced(name):
    problem, rounds = small("product")
    game = jax.eval_shape(lambda rounds: cx.play(problem, LEARNERS[name], rounds, key=jax.random.key(0)), rounds)
    assert kinds(game.decision) == kinds(problem.domain.start())


@pytest.mark.parametrize("name", sorted(LONG | CHOOSING))
def test_games_in_float32_can_be_traced(name):
    problem, rounds = small("simplex")
    start = problem.domain.start().astype(jnp.float32)
    game = jax.eval_shape(
        lambda rounds: cx.play(problem, LEARNERS[name], rounds, key=jax.random.key(0), start=start), rounds
    )
    assert game.decision.dtype == jnp.float32


def test_the_fast_run_plays_pytrees_with_every_way_to_observe():
    def ways(names):
        return {type(LEARNERS[name]).observe for name in names}

    assert ways(PLAYED_ON_PYTREES) == ways(ON_PYTREES)


@pytest.mark.parametrize("name", slow_but(["PDMFW", "DPP", "Auto"], ON_MATRICES))  # PDMFW has FTPL's noise
def test_decisions_may_be_matrices(name):
    check_game(LEARNERS[name], *small("nuclear"), key=jax.random.key(0), random=USES_COINS.get(name))


@pytest.mark.parametrize("name", slow_but(["OCG", "FTPL"], PRIMALS))  # the learner sums, and primals see the sum
def test_the_order_of_three_constraints_is_of_no_importance(name):
    problem, rounds = problems.tracking(
        cx.domains.ProbabilitySimplex(4), key=jax.random.key(1), rounds=ROUNDS, constraints=3
    )
    backwards = rounds | {"use": rounds["use"][:, ::-1], "budget": rounds["budget"][:, ::-1]}
    learner = learners.Blocks(PRIMALS[name], theta_scale=1e-3)  # so that multipliers matter
    games = [
        cx.play(problem, learner, each, key=jax.random.key(0), keep_decisions=True) for each in (rounds, backwards)
    ]
    np.testing.assert_allclose(games[0].decisions, games[1].decisions, atol=1e-9)
    np.testing.assert_allclose(games[0].multiplier, games[1].multiplier[:, ::-1], rtol=1e-9, atol=1e-12)
    last = np.sort(games[0].multiplier[-1])
    assert last[-1] > 0.1 and np.diff(last).min() > 1e-3


@pytest.mark.parametrize("name", ["Auto", "Blocks OCG", "DPP"])
def test_named_constraints_and_given_gradients_play_the_same_game(name):
    """To rounding; `check_learner` asks it of every learner, under vmap and with the decision as played."""
    problem, rounds = small("simplex")
    games = [
        cx.play(each, LEARNERS[name], rounds, key=jax.random.key(0), keep_decisions=True)
        for each in (problem, with_names_and_gradients(problem))
    ]
    for field in ("decisions", "loss", "constraint", "multiplier"):
        found, expected = (np.asarray(getattr(game, field)) for game in games)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * (1 + np.abs(expected).max()))


@pytest.mark.parametrize(
    "make",
    [
        lambda **given: learners.Blocks(primal.OCG(), **given),
        lambda **given: learners.PDMFW(**given),
        lambda beta, **given: baselines.PDOGD(**given),
    ],
    ids=["Blocks", "PDMFW", "PDOGD"],
)
def test_new_hyperparameters_compile_nothing(make):
    problem, rounds = small("simplex")
    first, second = make(beta=0.0, theta_scale=1.0), make(beta=0.1, theta_scale=0.5)
    key = jax.random.key(0)
    horizons = cx.Horizon(ROUNDS, ROUNDS + 4), cx.Horizon(ROUNDS + 2, ROUNDS + 4)
    cx.play(problem, first, rounds, key=key, horizon=horizons[0], keep_decisions=True)
    with jax.no_tracing():
        cx.play(problem, second, rounds, key=key, horizon=horizons[1], keep_decisions=True)


@pytest.mark.parametrize("name", ["Blocks OCG", "Blocks FTPL", "PDOGD", "DPP"])
def test_gradients_are_taken_at_the_point_played(name):
    """Playing y against a target z is, to gradients and values, playing x against z + x - y."""
    problem, rounds = small("simplex")
    learner = LEARNERS[name]
    state = cx.play(
        problem,
        learner,
        jax.tree.map(lambda leaf: leaf[:8], rounds),
        key=jax.random.key(0),
        horizon=cx.Horizon(ROUNDS, ROUNDS + 4),
        keep_decisions=True,
    ).state
    round = jax.tree.map(lambda leaf: leaf[8], rounds)
    x, y = learner.decision(state), jnp.array([0.1, 0.2, 0.3, 0.4])
    shifted = {
        **round,
        "target": round["target"] + x - y,
        "budget": round["budget"] + round["use"] @ (x - y),
    }

    @jax.jit
    def observe(state, round, played):
        return learner.observe(problem, state, round, played=played)[0]

    there, here = observe(state, round, y), observe(state, shifted, x)
    if name == "DPP":  # its queue looks from the point played to the next decision
        there, here = learner.decision(there), learner.decision(here)
    for a, b in zip(jax.tree.leaves(there), jax.tree.leaves(here), strict=True):
        if jnp.issubdtype(a.dtype, jnp.floating):
            np.testing.assert_allclose(a, b, atol=1e-12)
    assert not np.allclose(x, y)


@pytest.mark.slow
def test_learners_are_checked_on_vectors_matrices_and_trees_by_default():
    check_learner(learners.Stay(), key=jax.random.key(0))


class Outside(learners.Stay):
    def decision(self, state):
        return 1.001 * state.point


class Deaf(learners.Stay):
    def observe(self, problem, state, round, *, played=None):
        return super().observe(problem, state, round)


class Blithe(learners.Stay):
    def observe(self, problem, state, round, *, played=None):
        state, outcome = super().observe(problem, state, round, played=played)
        return state, eqx.tree_at(lambda o: o.finite, outcome, jnp.asarray(True))


class Careless(learners.Stay):
    def observe(self, problem, state, round, *, played=None):
        state, outcome = super().observe(problem, state, round, played=played)
        return (state, outcome) if played is None else Blithe().observe(problem, state, round, played=played)


@pytest.mark.parametrize(
    "learner, random, sentence",
    [
        (Outside(), None, "the decision of round 0 lies outside the domain"),
        (Deaf(), None, "loss and constraint must be at played"),
        (Blithe(), None, "round 0 is not finite, but the learner reports no error"),
        (Careless(), None, rf"under vmap, bad_round must be \[-1, -1, {ROUNDS // 2}, -1\], got \[-1, -1, -1, -1\]"),
        (learners.Stay(), True, "decisions must depend on the key"),
    ],
    ids=["outside", "deaf", "blithe", "careless", "not random"],
)
def test_a_broken_learner_is_told_its_rule(learner, random, sentence):
    problem, rounds = small("simplex")
    with pytest.raises(AssertionError, match=sentence):
        check_learner(learner, key=jax.random.key(0), problem=problem, rounds=rounds, random=random)


class Negative(dual.RegularizedAscent):
    def weigh(self, state, values, norms=None):
        return self.forecast(state), state + values


class Hasty(dual.RegularizedAscent):
    def weigh(self, state, values, norms=None):
        _, state = super().weigh(state, values, norms)
        return self.forecast(state), state


class Promoting(dual.RegularizedAscent):
    def weigh(self, state, values, norms=None):
        return self.forecast(state), jnp.maximum(state + values * self.mu, 0)


@pytest.mark.parametrize(
    "cls, sentence",
    [(Negative, "weights must be >= 0"), (Hasty, "must weigh as it forecast"), (Promoting, "dtypes of the state")],
)
@pytest.mark.usefixtures("free_promotion")
def test_a_broken_dual_is_told_its_rule(cls, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_dual(cls(1.0, 0.1), key=jax.random.key(0))


class Greedy(primal.OGD):
    """Forgets the projection."""

    def step(self, domain, state, revealed, next_bounds, *, key):
        stepped, cost = super().step(domain, state, revealed, next_bounds, key=key)
        return eqx.tree_at(lambda s: s.point, stepped, jax.tree.map(lambda leaf: 2 * leaf, stepped.point)), cost


class Restless(primal.OGD):
    """Starts anew elsewhere."""

    def restart(self, domain, state, scale, *, key):  # pyright: ignore[reportIncompatibleMethodOverride]
        start = jax.tree.map(lambda new, old: new.astype(old.dtype), domain.start(), state.point)
        return self.init(domain, scale, start=start, key=key), primal.base.cost()


@pytest.mark.parametrize(
    "method, sentence",
    [(Greedy(), "lies outside the domain"), (Restless(), "restart must keep the current decision")],
    ids=["infeasible", "restless"],
)
def test_a_broken_primal_is_told_its_rule(method, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_primal(method, key=jax.random.key(0))
