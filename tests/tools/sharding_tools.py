"""What several devices find, as JSON: `python sharding_tools.py`, where XLA_FLAGS makes eight of one CPU.

With `more`, what takes longer and is asked by the slow run only: a study, and more learners on a large matrix."""

import functools
import json
import math
import re
import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx
from cocoax.lab import Study
from cocoax.lab.run import batch
from cocoax.lab.sources import as_source

PAGE = Path(__file__).parents[2] / "docs" / "devices.md"
_COLLECTIVES = "all-gather|all-reduce|all-to-all|collective-permute|collective-broadcast|reduce-scatter"


def page():
    """What the page's programs leave behind, one after the other."""
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        names = {}
        exec(code, names)
        yield names


def one_device():
    return jax.default_device(jax.local_devices()[0])


def distance(one, other):
    """The largest of all entries."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return max(float(np.max(np.abs(np.asarray(a) - np.asarray(b)), initial=0)) for a, b in pairs)


def figures(game):
    """What is compared: numbers, none of them a name, a key or a state."""
    return game.loss, game.constraint, game.multiplier, game.decision, game.average


def communication(program):
    """Each collective of a compiled program with the largest array that it makes."""
    found: dict[str, int] = {}
    for made, name in re.findall(rf"= (.*?) ({_COLLECTIVES})(?:-start)?\(", program):
        sizes = [math.prod(map(int, filter(None, sizes.split(",")))) for sizes in re.findall(r"\[([\d,]*)\]", made)]
        found[name] = max(found.get(name, 0), *sizes)
    return found


def whole(program, shape):
    """The arrays of a compiled program, as a device sees them, that are large enough for a matrix of this shape."""
    sizes = {tuple(map(int, each.split(","))) for each in re.findall(r"\w+\[([\d,]+)\]", program)}
    return sorted(each for each in sizes if set(shape) <= set(each) or math.prod(shape) in each)


def split(tree, mesh, rows):
    """The paths of the arrays that have so many rows, and whether each device has its share of them."""
    return {
        jax.tree_util.keystr(path): rows // mesh.size in leaf.sharding.shard_shape(leaf.shape)
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
        if rows in leaf.shape
    }


def batched():
    """11 games on all devices, and one device's share of them on one: games where rounding soon decides."""
    source = as_source("PCA", cx.problems.online_pca(jax.random.key(0), n=8))
    seeds, learner = list(range(11)), cx.learners.Auto()
    drawn = [source.draw(seed, 40) for seed in seeds]
    spread = batch.Batch(drawn, seeds)
    many, (part,) = spread.play(learner, 40)[0].games, spread._parts
    with one_device():
        share = batch.Batch(drawn[4:6], seeds[4:6]).play(learner, 40)[0].games
    return {
        "communication": communication(batch._prepared(learner, part, [40], False)[0].as_text()),
        "devices": part.mesh.size,
        "each": len(part.games[2].addressable_shards[0].data),
        "games": len(many.loss),
        "from the share": distance(jax.tree.map(lambda leaf: leaf[4:6], many), share),
        "from others": distance(jax.tree.map(lambda leaf: leaf[2:4], many), share),
    }


def hosted():
    """An LMO in NumPy, asked by all devices."""
    domain = cx.domains.from_lmo(
        lambda d: np.eye(4)[np.argmin(d)], start=np.full(4, 0.25), diameter=math.sqrt(2), host=True
    )
    problem = cx.Problem(domain, lambda x, r: r @ x)
    drawn = [as_source("own", (problem, jax.random.normal(jax.random.key(i), (9, 4)))).draw(0, 9) for i in range(8)]
    learner = cx.learners.PrimalDual(cx.primal.Tracked(), cx.dual.RegularizedAscent(theta=1.0, mu=0.1))
    many = batch.Batch(drawn, list(range(8))).play(learner, 9)[0]
    with one_device():
        alone = batch.Batch(drawn, list(range(8))).play(learner, 9)[0]
    return {"distance": distance(many.games, alone.games)}


def studied():
    """Three games of three devices that one device finds in the store; and its own."""
    problems = {"completion": functools.partial(cx.problems.matrix_completion, rows=6, cols=5, observed=8)}
    study = functools.partial(Study, problems, {"OCG": cx.learners.Blocks(cx.primal.OCG())}, [40], range(3))
    with tempfile.TemporaryDirectory() as folder:
        many = study(out=folder).run(quiet=True)
        with one_device():
            missing, alone = len(study(out=folder).missing()), study().run(quiet=True)
        numbers = [study.table().select("loss", "regret", "violation").to_numpy() for study in (many, alone)]
    return {"missing": missing, "distance": distance(*numbers)}


def vmapped(names):
    """The page's games, and the same on one device."""
    games, play = names["games"], names["play"]
    costs, keys = (jax.device_put(names[name], jax.local_devices()[0]) for name in ("costs", "keys"))
    return {
        "split": split(figures(games), names["mesh"], 16),
        "communication": communication(play.lower(names["costs"], names["keys"]).compile().as_text()),
        "distance": distance(figures(games), figures(play(costs, keys))),
    }


def matrix(names, more):
    """The page's large matrix, by its learner or by two more, and the same on one device."""
    problem, play, mesh, shape = (names[name] for name in ("problem", "play", "mesh", "shape"))
    start, rounds = names["start"], names["rounds"]
    at_home = jax.device_put((start, rounds), jax.local_devices()[0])
    learners = {
        "OCG": cx.learners.PrimalDual(cx.primal.OCG(), cx.dual.RegularizedAscent(theta=1.0, mu=0.1)),
        "PDMFW": cx.learners.PDMFW(),
    }
    learners, found = learners if more else {"Auto": cx.learners.Auto()}, {}
    for name, learner in learners.items():
        compiled = play.lower(learner, start, rounds).compile()
        program, game = compiled.as_text(), names["game"] if name == "Auto" else compiled(learner, start, rounds)
        found[name] = {
            "split": split((game.state, game.decision, game.average), mesh, shape[0]),
            "communication": communication(program),
            "whole": whole(program, shape),
            "distance": distance(figures(game), figures(play(learner, *at_home))),
            "moved": float(jnp.max(jnp.abs(game.decision))),
        }
    if not more:
        return found | {"gathering": gathering(start)}
    round = jax.tree.map(lambda leaf: leaf[0], rounds)
    observe = jax.jit(lambda learner, state, round: learner.observe(problem, state, round))
    arguments = cx.learners.Auto(), names["game"].state, round
    program = observe.lower(*arguments).compile().as_text()
    found["observe"] = {
        "split": split(observe(*arguments)[0], mesh, shape[0]),
        "communication": communication(program),
        "whole": whole(program, shape),
    }
    return found


def gathering(start):
    """A program that does need the whole matrix, to see that it is found out."""
    program = jax.jit(lambda x: jnp.linalg.svd(x, compute_uv=False)).lower(start).compile().as_text()
    return {"communication": communication(program), "whole": whole(program, start.shape)}


if __name__ == "__main__":
    (games, rows), more = page(), sys.argv[1:] == ["more"]
    found = {"study": studied()} if more else {"batch": batched(), "hosted": hosted(), "vmapped": vmapped(games)}
    print(json.dumps(found | {"devices": jax.local_device_count(), "matrix": matrix(rows, more)}))
