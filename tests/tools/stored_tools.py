"""What tests/sessions/stored holds: sessions and fingerprints that an earlier version of cocoax wrote.

To write them with the version that is installed: `JAX_ENABLE_X64=1 python tests/tools/stored_tools.py FOLDER`.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import cocoax as cx

OPTIONS = {
    "closed": {},  # a learner that computes: the file holds its state after the last round
    "killed": {"pending": 2},  # its last events have to be played again, with the same bits
}


def loss(x, r):
    return jnp.vdot(r["cost"], x)


def constraint(x, r):
    return jnp.vdot(r["use"], x) - 0.5


def problem():
    return cx.Problem(cx.domains.Box([0.0] * 4, [1.0] * 4), loss, constraint)


def a_round(number):
    """Whole numbers of sixteenths: their sums are exact on every machine."""
    values = np.random.default_rng(number).integers(0, 17, (2, 4)) / 16
    return {"cost": values[0], "use": values[1]}


def session(path, name):
    learner = cx.learners.TrackedPI() if name == "closed" else cx.learners.Stay()
    return cx.Session(problem(), learner, path, key=jax.random.key(0), **OPTIONS[name])


def play(it, name, count):
    """The next decisions, one a round; with late feedback, one more round is pending after each."""
    decisions = []
    for number in range(it.rounds, it.rounds + count):
        if name == "closed":
            decisions.append(it.decide())
            it.observe(a_round(number))
        else:
            decisions.append(it.decide(str(number)))
            it.decide(str(number + 1))
            it.observe(a_round(number), ticket=str(number))
    return decisions


def _domains():
    d, edges = cx.domains, [(0, 1), (1, 2), (0, 2)]
    box, ball = d.Box([0.0, 0.0], [1.0, 1.0]), d.L2Ball(2, 1.0)
    vectors = [
        *(box, ball, d.L1Ball(3, 1.0), d.LinfBall(3, 1.0), d.ZeroOneCube(3), d.LpBall(3, 1.0, 3.0)),
        *(
            d.ProbabilitySimplex(3),
            d.UnitSimplex(3),
            d.CappedSimplex([0.5, 0.5, 0.5]),
            d.ReverseKnapsack([1.0, 1.0], 1.0),
        ),
        *(d.GroupLassoBall([0, 0, 1], 1.0), d.GroupMaxBall([0, 0, 1], 1.0), d.OWLBall([2.0, 1.0], 1.0)),
        *(d.KSparse(3, 2, 1.0), d.KNormBall(3, 2, 1.0), d.HyperSimplex(3, 1), d.Permutahedron([1.0, 2.0])),
        *(d.Diamond([1.0, 2.0], [2.0, 4.0]), d.Ellipsoid(np.eye(2))),
    ]
    matrices = [
        *(d.NuclearNormBall((3, 2), 1.0), d.NuclearNormBall((3, 2), 1.0, factored=True, rank=2), d.Spectraplex(3)),
        *(d.UnitSpectrahedron(3), d.SchattenBall((3, 2), 1.0, 3.0), d.SpectralNormBall((3, 2), 1.0), d.Fantope(3, 1)),
    ]
    polytopes = [
        *(d.Birkhoff(3), d.Transport([0.5, 0.5], [0.5, 0.5]), d.ShortestPath(edges, 0, 2), d.Flow(edges, 0, 2)),
        *(d.SpanningTree(edges), d.Matching(edges), d.PartitionMatroid([0, 0, 1], [1, 1]), d.ConvexHull(np.eye(3))),
        d.Polytope(np.eye(2), [1.0, 1.0], lower=0.0),
    ]
    composed = [
        *(d.Intersection(box, [[1.0, 1.0]], [1.0]), d.LinearImage(ball, np.eye(2)), d.Product({"a": box, "b": ball})),
        *(d.MinkowskiSum([box, ball]), d.UnionHull([box, ball]), d.Scale(box, 2.0), d.Translate(box, [1.0, 1.0])),
        *(d.Cached(box), d.Counted(box)),
    ]
    return [*vectors, *matrices, *polytopes, *composed]


def _learners():
    learners, p = cx.learners, cx.primal
    plain = [
        *(
            [
                "TrackedPI",
                "TrackedPI",
                "Stay",
                "DPP",
                "DPPMirror",
                "Liakopoulos",
                "YuNeely",
                "PDOFW",
                "PENOFW",
                "RECOO",
                "Yi",
                "YuanLamperski",
                "LyapHard",
            ]
        ),
        *(["LyapPred", "LyapStoch", "PDMFW", "PDOGD", "AdaptivePDOGD", "OSPHG", "Valls"]),
    ]
    primal = [
        "AdaMFW",
        "AdaOFW",
        "AdaGrad",
        "FTPL",
        "LOOBOGD",
        "MetaOGD",
        "MFW",
        "MORGFW",
        "OCG",
        "OFW",
        "OGD",
        "ORGFW",
        "OSPF",
        "SFTPL",
        "Tracked",
    ]
    return [
        *(getattr(learners, name)() for name in plain),
        *(learners.Castiglioni(0.1), learners.FWCSOA(0.1), learners.Anytime(learners.PDOGD())),
        learners.Capped(learners.TrackedPI(), safe=[0.0, 0.0], limit=0.5, bound=2.0),
        learners.PrimalDual(p.Tracked(), cx.dual.PI()),
        *(learners.Blocks(getattr(p, name)()) for name in primal),
        learners.PrimalDual(p.OGD(), cx.dual.VirtualQueue()),
    ]


def parts():
    """Domains, learners and functions of cocoax by name."""
    sources = [getattr(cx.problems, name) for name in ["simplex", "pacing", "portfolio", "online_pca", "shortest_path"]]
    losses = [source(jax.random.key(0)).problem.loss for source in sources]
    found = [*_domains(), *_learners(), *sources, *losses]
    return {f"{i} {getattr(part, '__qualname__', type(part).__qualname__)}": part for i, part in enumerate(found)}


def main(folder):
    try:
        from cocoax.core.fingerprint import fingerprint
    except ImportError:
        from cocoax._fingerprint import fingerprint  # pyright: ignore[reportMissingImports]
    folder.mkdir(parents=True, exist_ok=True)
    next_decisions = {}
    for name in OPTIONS:
        with tempfile.TemporaryDirectory() as work:
            with session(Path(work, name), name) as it:
                play(it, name, 20)
            with session(Path(work, name), name) as it:
                play(it, name, 2 if name == "killed" else 0)
                for file in Path(work).iterdir():
                    shutil.copyfile(file, folder / file.name)
                next_decisions[name] = [[number.hex() for number in x.tolist()] for x in play(it, name, 20)]
    (folder / "next.json").write_text(json.dumps(next_decisions))
    (folder / "fingerprints.json").write_text(
        json.dumps({name: fingerprint(part) for name, part in parts().items()}, indent=1)
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
