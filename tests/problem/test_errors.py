"""What new users get wrong, and the one sentence that they get for it."""

import inspect
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cocoax as cx
from cocoax import baselines, domains, dual, learners, primal

KEY = jax.random.key(0)
SIMPLEX = domains.ProbabilitySimplex(3)
CONSTANTS = (cx.Regularity(4.0, 1.0, 4.0), cx.Regularity(4.0, 1.0, 4.0, norm=jnp.inf))
BLOCKS = learners.Blocks(primal.OCG())
ROUNDS = {"cost": np.linspace(-1, 1, 36).reshape(12, 3), "use": np.linspace(0, 1, 36).reshape(12, 3)}


def loss(x, r):
    return jnp.vdot(r["cost"], x)


def constraint(x, r):
    return jnp.vdot(r["use"], x) - 0.5


def problem(domain=SIMPLEX, loss=loss, constraint=constraint, **options):
    return cx.Problem(domain, loss, constraint, **{"regularity": CONSTANTS, **options})


def play(learner=BLOCKS, rounds=ROUNDS, on=None, **options):
    return cx.play(problem() if on is None else on, learner, rounds, **{"key": KEY, **options})


def go_on(state, learner=BLOCKS, on=None):
    return play(learner, jax.tree.map(lambda leaf: leaf[:2], ROUNDS), on, key=None, state=state)


def half(learner=BLOCKS, on=None):
    return play(learner, jax.tree.map(lambda leaf: leaf[:6], ROUNDS), on, horizon=12, keep_rounds=True)


def two(x, r):
    return jnp.stack([constraint(x, r)] * 2)


class Fixed(cx.Environment):
    def init(self, key):
        return jnp.zeros(())

    def emit(self, state, decision, key):
        return state, {"cost": jnp.ones(3), "use": jnp.ones(3)}


class OnlyRounds(Fixed):
    def emit(self, state, decision, key):  # pyright: ignore[reportIncompatibleMethodOverride]
        return {"cost": jnp.ones(3), "use": jnp.ones(3)}


class Duck:
    def init(self, key): ...
    def emit(self, state, decision, key): ...


class Greedy:
    def init(self, params): ...
    def update(self, gradients, state, params, *, value): ...


class PlainTuple(learners.Stay):
    def observe(self, problem, state, round, *, played=None):  # pyright: ignore[reportIncompatibleMethodOverride]
        return state, (jnp.zeros(()), jnp.zeros(1))


class Outside(learners.Stay):
    def decision(self, state):
        return 1.01 * state.point


def looping(x, r):
    return jax.lax.while_loop(lambda value: value < 1, lambda value: 2 * value + 1, loss(x, r))


def calling_back(x, r):
    return jax.pure_callback(lambda y: np.sum(y, keepdims=False), jax.ShapeDtypeStruct((), x.dtype), x)


def pair(**options):
    """A problem whose decisions are pairs."""
    halves = domains.Product((SIMPLEX, SIMPLEX))
    return cx.Problem(halves, lambda x, r: loss(x[0], r) + loss(x[1], r), **options)


def tracked(step):
    return learners.PrimalDual(primal.Tracked(step), dual.RegularizedAscent(1.0, 0.1))


def corner(direction):
    return np.eye(3)[np.argmin(direction)]


def from_lmo(fn, **options):
    return domains.from_lmo(fn, **{"start": np.ones(3) / 3, "diameter": 2**0.5, "host": True, **options})


def failing(direction):
    raise KeyError("no such arc")


def sometimes_nan(direction):
    return jnp.where(direction[0] == 1, 1.0, jnp.nan) * jnp.ones(3) / 3


def batch():
    return jax.vmap(lambda key: play(horizon=24, key=key))(jax.random.split(KEY, 2))


REFUSED = {
    # going on from a state
    "a game as state": (lambda: go_on(half()), "state= is a Game; give its state, game.state"),
    "a word as state": (lambda: go_on("x"), "state= must be game.state of an earlier game, got 'x'"),
    "PDMFW's state": (lambda: go_on(half(learners.PDMFW()).state), "state= does not belong to Blocks; give the state"),
    "OSPF's state": (
        lambda: go_on(half(learners.Blocks(primal.OSPF())).state),
        "state= does not belong to Blocks; give the state of a game that it played on this problem",
    ),
    "DPP's state": (lambda: go_on(half(learners.DPP()).state, baselines.PDOGD()), "state= does not belong to PDOGD"),
    "Stay's state": (lambda: go_on(half(learners.Stay()).state), "state= does not belong to Blocks"),
    "a state for Stay": (lambda: go_on(half().state, learners.Stay()), "state= does not belong to Stay"),
    "a batch of states": (lambda: go_on(batch().state), "has shape (2, 3), but Blocks has (3,) there on this problem"),
    "another dimension": (
        lambda: go_on(half().state, on=problem(domains.ProbabilitySimplex(4))),
        "has shape (3,), but Blocks has (4,) there on this problem",
    ),
    "another number of constraints": (
        lambda: go_on(half().state, on=problem(constraint=two, constraints=2)),
        "has shape (1,), but Blocks has (2,) there on this problem",
    ),
    # oracles and functions of one's own
    "an LMO that fails": (lambda: from_lmo(failing), "fn fails for a direction of ones: KeyError: 'no such arc'"),
    "an LMO of a wrong shape": (lambda: from_lmo(lambda d: np.ones(2)), "fn must return a point of shape (3,), like"),
    "an LMO with NaN": (lambda: from_lmo(lambda d: d * np.nan), "fn must return a finite point, got NaN"),
    "an LMO in NumPy": (lambda: from_lmo(corner, host=False), "cannot be compiled; give from_lmo(host=True)"),
    "an LMO with NaN later": (
        lambda: play(on=problem(from_lmo(sometimes_nan, host=False))),
        "the decision is not finite, although all was before; mend the domain's lmo or the Regularity",
    ),
    "a loss in NumPy": (
        lambda: play(on=problem(loss=lambda x, r: np.asarray(x).sum())),
        "loss is NumPy or Python code, which cannot be compiled; write loss with jax.numpy",
    ),
    "a constraint in Python": (
        lambda: play(on=problem(constraint=lambda x, r: float(x[0]))),
        "constraint is NumPy or Python code, which cannot be compiled; write constraint with jax.numpy",
    ),
    "no loss": (lambda: play(on=problem(loss=lambda x, r: None)), "loss(x, round) must return one number, got None"),
    "no constraint": (
        lambda: play(on=problem(constraint=lambda x, r: None)),
        "constraint must return a number, a vector or a dict of numbers, got None",
    ),
    "a loss of x": (
        lambda: problem(loss=lambda x: x.sum()),
        "loss must be callable as loss(x, round) or loss(x, round, previous), but too many",
    ),
    # derivatives of one's own, and those that JAX does not have
    "a gradient in NumPy": (
        lambda: play(on=problem(loss_grad=lambda x, r: np.asarray(r["cost"]))),
        "loss_grad is NumPy or Python code, which cannot be compiled; write loss_grad with jax.numpy",
    ),
    "no gradient": (
        lambda: play(on=problem(loss_grad=lambda x, r: None)),
        "loss_grad must return numbers like the decision, got None",
    ),
    "a tree as gradient": (
        lambda: play(on=problem(loss_grad=lambda x, r: {"x": r["cost"]})),
        "loss_grad must return numbers like the decision, got dict",
    ),
    "half a tree as gradient": (
        lambda: play(learners.Auto(), on=pair(loss_grad=lambda x, r: (r["cost"],))),
        "loss_grad must return a tree like the decision, PyTreeDef((*, *)), got PyTreeDef((*,))",
    ),
    "a complex gradient": (
        lambda: play(on=problem(loss_grad=lambda x, r: 1j * r["cost"])),
        "loss_grad must return real numbers, got complex ones",
    ),
    "a short gradient": (
        lambda: play(on=problem(loss_grad=lambda x, r: r["cost"][:2])),
        "loss_grad must return the decision's shape (3,), got (2,)",
    ),
    "no gradients": (
        lambda: play(on=problem(constraint_grad=lambda x, r: None)),
        "constraint_grad must return numbers like the decision, with a leading axis of 1, got None",
    ),
    "too few gradients": (
        lambda: play(on=problem(constraint=two, constraints=2, constraint_grad=lambda x, r: r["use"])),
        "constraint_grad must return the shape (2, 3), got (3,)",
    ),
    **{
        f"{what}, {type(learner).__name__}": (
            lambda each=learner, loss=loss: play(each, on=problem(loss=loss)),
            f"JAX cannot differentiate the loss or the constraint ({told}",
        )
        for learner in (BLOCKS, learners.Auto())
        for what, loss, told in (
            ("a loop", looping, "Reverse-mode differentiation does not work for lax.while_loop"),
            ("a callback", calling_back, "Pure callbacks do not support JVP"),
        )
    },
    # optimisers
    "an optimiser that needs more": (
        lambda: play(tracked(Greedy())),
        "an Optax optimiser must need no more than gradients and parameters, but TypeError: Greedy.update() missing 1 "
        "required keyword-only argument: 'value'; give another, or one of primal.steps",
    ),
    "a class of optimisers": (lambda: primal.steps.Optax(Greedy), "Optax needs one of Optax's optimisers, got type"),
    "no optimiser": (lambda: primal.steps.Optax(0.1), "Optax needs one of Optax's optimisers, got 0.1"),
    # classes, and parts in wrong places
    "a class of primals": (lambda: learners.Blocks(primal.OCG), "OCG is a class; write OCG(...)"),
    "a word as primal": (lambda: learners.Blocks("OCG"), "Blocks needs one of cocoax.primal, got 'OCG'"),
    "a class of duals": (lambda: learners.PrimalDual(primal.OCG(), dual.VirtualQueue), "VirtualQueue is a class"),
    "two classes": (lambda: learners.PrimalDual(primal.OCG, dual.VirtualQueue), "OCG is a class; write OCG(...)"),
    "swapped": (
        lambda: learners.PrimalDual(dual.RegularizedAscent(1.0, 0.1), primal.OCG()),
        "PrimalDual needs one of cocoax.primal first, got RegularizedAscent",
    ),
    "a class of learners": (lambda: play(learners.Blocks), "Blocks is a class; write Blocks(...)"),
    "a class of domains": (lambda: problem(domains.ProbabilitySimplex), "ProbabilitySimplex is a class; write"),
    # constants
    "an unknown norm": (lambda: cx.Regularity(1.0, norm="two"), "the norm 2 or inf, got norm='two'"),
    "only l2": (
        lambda: play(learners.PDMFW(), on=problem(regularity=CONSTANTS[0])),
        "add a Regularity(norm=jnp.inf, ...), or choose perturbation='ball', which takes l2 constants",
    ),
    "infinite": (lambda: cx.Regularity(jnp.inf), "lipschitz must be one finite number >= 0, got inf"),
    "a word as constant": (lambda: cx.Regularity("7"), "lipschitz must be a number, got '7'"),
    "a number as regularity": (lambda: problem(regularity=7.0), "regularity must be a Regularity, or several, one per"),
    "1.0 constraints": (lambda: problem(constraints=1.5), "constraints must be a whole number, got 1.5"),
    # keys, horizons, lengths
    "a number as key": (lambda: play(key=0), "play needs a key, for example key=jax.random.key(0), got 0"),
    "a word as key": (lambda: play(key="a"), "play needs a key, for example key=jax.random.key(0), got 'a'"),
    "a batch of keys": (lambda: play(key=jax.random.split(KEY, 3)), "one key, got a batch of shape (3,); for a batch"),
    "no key to minimize": (
        lambda: cx.minimize(problem(), Fixed(), horizon=9, key=None),
        "minimize needs a key, for example key=jax.random.key(0), got None",
    ),
    **{
        f"horizon {horizon!r}": (lambda h=horizon: play(horizon=h), f"horizon must be a whole number, got {horizon!r}")
        for horizon in (2.5, "60", float("nan"), float("inf"), np.array([60]))
    },
    "a huge horizon": (lambda: play(horizon=2**31), "horizon must be at most 2147483647, got 2147483648"),
    "a wrong horizon there": (lambda: play(rounds=Fixed(), horizon="60"), "horizon must be a whole number, got '60'"),
    **{
        f"length {length!r}": (lambda n=length: play(rounds=Fixed(), horizon=9, length=n), sentence)
        for length, sentence in (
            (0, "length must be at least 1, got 0"),
            (-1, "length must be at least 1, got -1"),
            ("2", "length must be a whole number, got '2'"),
        )
    },
    # rounds
    "a class of environments": (lambda: play(rounds=Fixed, horizon=9), "Fixed is a class; give rounds, or write Fixed"),
    "a duck": (lambda: play(rounds=Duck(), horizon=9), "Duck has emit, but is no Environment; derive it from cocoax."),
    "emit without a state": (lambda: play(rounds=OnlyRounds(), horizon=9), "emit must return (state, round), got dict"),
    "drawn without a state": (lambda: OnlyRounds().draw(3, KEY), "emit must return (state, round), got dict"),
    "a list of rounds": (
        lambda: play(rounds=[{name: leaf[t] for name, leaf in ROUNDS.items()} for t in range(12)]),
        "rounds are a list of 12 dicts; stack them: {name: jnp.asarray([r[name] for r in rounds]) for name in rounds",
    ),
    "a list of rounds in plain numbers": (
        lambda: play(rounds=[{"cost": [1.0, 2.0, 3.0]}] * 2),
        "rounds are a list of 2 dicts; stack them: {name: ",
    ),
    "lists of unequal lengths": (
        lambda: play(rounds={**ROUNDS, "cost": [*ROUNDS["cost"].tolist()[1:], [0.0]]}),
        "rounds['cost'] is a list of numbers; give an array: jnp.asarray(...)",
    ),
    "words in rounds": (
        lambda: play(rounds={**ROUNDS, "name": np.array(["a"] * 12)}),
        "rounds['name'] must be an array of numbers, got dtype <U1; leave it out, or make numbers of it",
    ),
    "objects in rounds": (
        lambda: play(rounds={**ROUNDS, "what": np.array([None] * 12)}),
        "rounds['what'] must be an array of numbers, got dtype object",
    ),
    # what functions read and return
    "a field that rounds lack": (
        lambda: play(on=problem(loss=lambda x, r: r["price"] @ x)),
        "loss reads the field 'price', but a round has the fields 'cost', 'use'; add it, or correct its name",
    ),
    "shapes that do not go together": (
        lambda: play(on=problem(loss=lambda x, r: r["cost"][:2] @ x)),
        "loss fails where x has the shape (3,) and a round {'cost': (3,), 'use': (3,)} (dot_general requires",
    ),
    "a complex loss": (
        lambda: play(on=problem(loss=lambda x, r: 1j * (r["cost"] @ x))),
        "loss must return real numbers, got dtype complex",
    ),
    "a constraint that is a comparison": (
        lambda: play(on=problem(constraint=lambda x, r: x[0] <= 0.5)),
        "constraint returned true or false; return by how much a limit is exceeded, as used - limit",
    ),
    "a loss that is a comparison": (
        lambda: play(on=problem(loss=lambda x, r: x.sum() > 0.5)),
        "loss returned true or false, which has no gradient; return a number that is to be small",
    ),
    "places in lists": (
        lambda: play(on=problem(loss=lambda x, r: x[r["place"]]), rounds={**ROUNDS, "place": [0, 1, 2] * 4}),
        "loss takes entries at places that are floats, as all numbers in lists of rounds are; give an array",
    ),
    # comparators
    "other rounds": (
        lambda: half().regret(cx.Comparator.fixed(problem(), ROUNDS, jnp.array([1.0, 0.0, 0.0]))),
        "the comparator is for 12 rounds, the game has 6; give hindsight those of the game",
    ),
    "a long point": (
        lambda: half().regret(jnp.ones(4)),
        "a point of shape (3,) or a path of shape (6, 3), got shape (4",
    ),
    "a short list": (
        lambda: half().regret([0.5, 0.5]),
        "a point of shape (3,) or a path of shape (6, 3), got shape (2",
    ),
    "no comparator": (lambda: half().regret(None), "comparator must be what hindsight returns, a point of shape (3,)"),
    "a number": (lambda: half().regret(0.5), "comparator must be what hindsight returns, a point of shape (3,) or a"),
    # numbers
    "beta 'a'": (lambda: learners.PDMFW(beta="a"), "beta must be a number, got 'a'"),
    "beta None": (lambda: learners.PDMFW(beta=None), "beta must be a number, got None"),
    "beta []": (lambda: learners.Blocks(primal.OCG(), beta=[0.1]), "beta must be one number, got [0.1]"),
    "theta_scale 'a'": (lambda: baselines.PDOGD(theta_scale="a"), "theta_scale must be a number, got 'a'"),
    "tol 'a'": (lambda: cx.hindsight(problem(), ROUNDS, tol="a"), "tol must be a number, got 'a'"),
    "tol None": (lambda: cx.hindsight(problem(), ROUNDS, tol=None), "tol must be a number, got None"),
    "n 2.5": (lambda: domains.ProbabilitySimplex(2.5), "n must be a whole number, got 2.5"),
    "n '3'": (lambda: domains.ProbabilitySimplex("3"), "n must be a whole number, got '3'"),
    "n (3,)": (lambda: domains.UnitSimplex((3,)), "n must be a whole number, got (3,)"),
    "radius '1'": (lambda: domains.NuclearNormBall((2, 3), "1"), "radius must be a number, got '1'"),
    "shape 2.5": (lambda: domains.L2Ball(2.5, 1.0), "every size in a shape must be a whole number, got 2.5"),
    # hindsight and minimize
    "expected number": (
        lambda: cx.hindsight(problem(), ROUNDS, expected_constraint=0.0),
        "expected_constraint must be callable as expected_constraint(x), got 0.0",
    ),
    "a learner for hindsight": (lambda: cx.hindsight(BLOCKS, ROUNDS), "hindsight needs a Problem first, got Blocks"),
    "hindsight under jit": (
        lambda: jax.jit(lambda rounds: cx.hindsight(problem(), rounds).value)(ROUNDS),
        "hindsight runs on the host; call it outside jit and vmap",
    ),
    "hindsight under vmap": (
        lambda: jax.vmap(lambda cost: cx.hindsight(problem(), {**ROUNDS, "cost": cost}).value)(jnp.ones((2, 12, 3))),
        "hindsight runs on the host; call it outside jit and vmap",
    ),
    "rounds to minimize": (
        lambda: cx.minimize(problem(), ROUNDS, horizon=9, key=KEY),
        "minimize draws its rounds from an Environment, got dict",
    ),
    "samples 2.5": (
        lambda: cx.minimize(problem(), Fixed(), horizon=9, key=KEY, samples=2.5),
        "samples must be a whole number, got 2.5",
    ),
    # what is not finite
    "a kink": (
        lambda: play(on=problem(loss=lambda x, r: jnp.sqrt(x[0])), start=[0.0, 1.0, 0.0]),
        "round 0: the gradient is not finite at a finite point; give another start=",
    ),
    "a bad round": (
        lambda: play(rounds={**ROUNDS, "cost": np.where(np.arange(12)[:, None] == 7, np.nan, ROUNDS["cost"])}),
        "round 7: the loss is not finite, because round['cost'][0] is nan; mend or drop that round",
    ),
    "a bad value": (
        lambda: play(on=problem(loss=lambda x, r: jnp.where(r["cost"][0] < 0.8, x[0], jnp.nan))),
        "round 11: the loss is not finite at the decision, although the round's data are, as a logarithm of 0 or an "
        "overflow; give a start= inside the domain or smaller units, or mend or drop that round",
    ),
    "a bad round in hindsight": (
        lambda: cx.hindsight(problem(), {**ROUNDS, "use": np.where(np.arange(36).reshape(12, 3) == 11, np.inf, 0.1)}),
        "the constraint of round 3 is not finite at the domain's start, because round['use'][2] is inf",
    ),
    **{
        f"{type(learner).__name__} on a single point": (
            lambda each=learner: play(each, on=problem(domains.Box(jnp.ones(3), jnp.ones(3)))),
            "the domain is a single point, so there is nothing to decide",
        )
        for learner in (BLOCKS, learners.PDMFW(), baselines.PDOGD())
    },
    "a simplex of one": (
        lambda: play(on=problem(domains.ProbabilitySimplex(1), lambda x, r: x[0], lambda x, r: x[0])),
        "the domain is a single point, so there is nothing to decide",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.usefixtures("free_promotion")  # as users have it
def test_mistakes_get_one_sentence(name):
    attempt, sentence = REFUSED[name]
    with pytest.raises(cx.CocoaxError, match=re.escape(sentence)) as caught:
        attempt()
    assert "\n" not in str(caught.value)


PARTS = {
    f"{module.__name__.removeprefix('cocoax.')}.{name}": each
    for module in (learners, baselines, primal, primal.steps, dual)
    for name, each in inspect.getmembers(module, inspect.isclass)
    if issubclass(each, eqx.Module) and not name.startswith(("_", "Abstract"))
    if name not in ("Cost", "Outcome", "RoundBounds", "Weights")
}
GIVEN = {  # what else a class must be given
    **{"primal": primal.OCG(), "dual": dual.RegularizedAscent(1.0, 0.1), "rule": dual.Penalty(1.0), "step": 0.1},
    **{
        "learner": learners.Stay(),
        "slater": 0.2,
        "safe": np.zeros(2),
        "limit": 1.0,
        "cap": 1.0,
        "rounds": 5,
        "response": lambda prices: prices,
        "features": lambda request: request,
        "dimension": 2,
        "spend": lambda x, round: x,
        "budget": 1.0,
        "first": 0.1,
    },
    **{"theta": 1.0, "mu": 0.1, "rate": 1.0, "factor": 0.5, "mixing": 1.0, "drain": 1.0, "margin": 1.0},
}
TOGETHER = ("RegularizedAscent", "DriftPotential", "OFW")  # take all of their numbers, or none


@pytest.mark.parametrize("name", PARTS)
def test_no_part_takes_anything_for_an_argument(name):
    part = PARTS[name]
    arguments = inspect.signature(part).parameters
    needed = [x for x, each in arguments.items() if each.default is each.empty or part.__name__ in TOGETHER]
    given = {x: GIVEN[x] for x in needed if x in GIVEN}
    for argument in arguments:
        for value in ("x", float("nan"), 1j, object(), {"a": 1.0, "b": "x"}):
            with pytest.raises(cx.LearnerError) as caught:
                part(**{**given, argument: value})
            assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name, wrong, sentence",
    [
        ("primal.OFW", {"rate": "x", "mixing": 1.0}, "rate must be a number, got 'x'"),
        ("primal.OFW", {"rate": 1.0, "mixing": [1, 2]}, "mixing must be one number, got [1, 2]"),
        ("primal.MFW", {"perturbation": ["ball"]}, "perturbation must be one of cube, centred, ball, got ['ball']"),
        ("primal.MORGFW", {"sample": 3}, "sample must be callable as sample(round, key), got 3"),
        ("primal.SFTPL", {"smooth": 1}, "smooth must be True or False, got 1"),
        ("dual.Penalty", {"zeta": float("nan")}, "zeta must be positive and finite, got nan"),
        ("dual.ExponentialPotential", {"loss_weight": None}, "loss_weight must be a number, got None"),
        ("dual.DriftPotential", {"rate": 1.0, "drain": [], "margin": 1.0}, "drain must be one number, got []"),
        ("dual.RegularizedAscent", {"theta": -1.0, "mu": -0.5}, "theta must lie in [0, inf], got -1.0"),
        ("dual.RegularizedAscent", {"theta": 2.0, "mu": 1.0}, "theta * mu must lie in [0, 1], got theta=2.0 and mu=1"),
        ("dual.VirtualQueue", {"loss_weight": 0.0}, "loss_weight must be positive and finite, got 0.0"),
    ],
)
def test_arguments_get_a_sentence_that_names_them(name, wrong, sentence):
    with pytest.raises(cx.LearnerError, match=re.escape(sentence)):
        PARTS[name](**wrong)


@pytest.mark.parametrize(
    "attempt, sentence",
    [
        (lambda: cx.testing.check_learner(PlainTuple(), key=KEY), "observe must return (state, Outcome), got"),
        (lambda: cx.testing.check_learner(Outside(), key=KEY), "the decision of round 0 lies outside the domain"),
        (lambda: cx.testing.check_learner(learners.Stay, key=KEY), "Stay is a class; write Stay(...)"),
        (lambda: cx.testing.check_domain(BLOCKS, key=KEY), "check_domain needs one of cocoax.domains, got Blocks"),
    ],
    ids=["a plain tuple", "outside", "a class", "no domain"],
)
def test_contracts_name_the_broken_promise(attempt, sentence):
    with pytest.raises(AssertionError, match=re.escape(sentence)):
        attempt()


# --- what reads like a mistake, but is not


def test_lists_of_numbers_are_points():
    start = [1 / 3, 1 / 3, 1 / 3]
    np.testing.assert_array_equal(play(start=start).loss, play(start=np.asarray(start)).loss)
    np.testing.assert_array_equal(half().regret(start), half().regret(np.asarray(start)))
    assert domains.from_lmo(corner, start=[0.0, 0.0, 1.0], diameter=2.0, host=True).shape == (3,)


def test_numbers_and_names_of_constraints():
    assert problem(constraints="budget").names == ("budget",)
    assert problem(constraint=two, constraints=np.int64(2)).constraints == 2
    assert cx.Regularity(1.0, norm="inf").norm == jnp.inf
    assert play(key=jax.random.PRNGKey(0), horizon=np.int64(12)).loss.shape == (12,)


def test_expected_constraints_have_names_too():
    named = problem(constraint=lambda x, r: {"budget": constraint(x, r)}, constraints="budget")
    best = cx.hindsight(named, ROUNDS, expected_constraint=lambda x: {"budget": x[0] - 0.25})
    plain = cx.hindsight(problem(), ROUNDS, expected_constraint=lambda x: x[0] - 0.25)
    np.testing.assert_allclose(best.x, plain.x, atol=1e-9)


def test_going_on_twice_traces_nothing():
    state = half().state
    go_on(state)
    with jax.no_tracing():
        go_on(state)


def test_old_keys_go_on():
    first = play(rounds=jax.tree.map(lambda leaf: leaf[:6], ROUNDS), horizon=12, key=jax.random.PRNGKey(0))
    assert go_on(first.state).loss.shape == (2,)
