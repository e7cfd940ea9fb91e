"""Many games: every learner on every problem, against the same rounds."""

import contextlib
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import polars as pl

from ..core import check
from ..core.compilation_cache import use_compilation_cache
from ..core.fingerprint import library, of_parts
from ..errors import CocoaxError, LabError
from ..learners.base import AbstractLearner
from .arguments import by_name, of_problem, whole_numbers
from .keys import Recognised
from .results import rows
from .results.store import Memory, Store, together
from .run.engine import run
from .run.pools import pool_of
from .run.tasks import Planned
from .sources import as_source
from .summary import summary


class Study:
    """Every learner on every problem, for every horizon and seed, on all devices at a time (docs/devices.md).

    **Arguments:**

    - `problems`: by name: a function `key -> problems.Instance`; an `Instance`; or `(problem, rounds)`, where the
      rounds are arrays or an `Environment` (which is asked beforehand: adversaries that react to decisions belong in
      `play`).
    - `learners`: by name: a learner; or, by the problem's name, the one that plays it. Problems that are not named are
      left out.
    - `horizons`: numbers of rounds; or, by the problem's name, lists of them. Each is a game of its own, of a learner
      that planned for it.
    - `seeds`: each is an instance with its rounds; all learners meet the same.
    - `out`: a folder, in which finished games are kept: a study that was stopped goes on where it was. Without it,
      results live as long as the study.
    - `tol`: of the comparators' certificates, as in `hindsight`.
    - `certify`: also keep what each game proves of its own regret while it is played (docs/certificates.md), at the
      rounds that curves keep; reports then have the band between regret and its proven bound. Factored decisions have
      no such bound.

    >>> import cocoax as cx
    >>> from cocoax.lab import Study
    >>> study = Study(
    ...     problems={"pacing": lambda key: cx.problems.pacing(key, segments=3)},
    ...     learners={"stay": cx.learners.Stay(), "OCG": cx.learners.Blocks(cx.primal.OCG())},
    ...     horizons=[20],
    ...     seeds=range(2),
    ... )
    >>> study.run(quiet=True).table().shape[0]
    4
    >>> print(study)  # doctest: +ELLIPSIS
    Study of 2 learners on 1 problem, 2 seeds: 4 of 4 games played
      pacing  mean score at T = 20, lowest first: ...
    """

    def __init__(
        self,
        problems: Mapping,
        learners: Mapping[str, AbstractLearner | Mapping[str, AbstractLearner]],
        horizons: Sequence[int] | Mapping[str, Sequence[int]],
        seeds: Sequence[int] = range(30),
        out: Path | str | None = None,
        *,
        tol: float = 1e-3,
        certify: bool = False,
    ):
        self.sources = {str(name): as_source(name, problem) for name, problem in by_name(problems, "problem").items()}
        self.learners = {str(name): learner for name, learner in by_name(learners, "learner").items()}
        for name, learner in self.learners.items():
            for one in learner.values() if isinstance(learner, Mapping) else [learner]:
                check.instance(one, AbstractLearner, LabError, f"{name!r} must be one of cocoax.learners")
        self.horizons = {name: whole_numbers(of_problem(horizons, name), "horizons", 1) for name in self.sources}
        self.seeds = whole_numbers(seeds, "seeds", 0)
        self.tol, self.certify = tol, certify
        self.out = None if out is None else Path(out)
        self.store = Memory() if out is None else Store(Path(out) / "store")
        self.refused: dict[str, str] = {}  # why games could not be played, by key; not stored, since it may be mended

    @property
    def certify(self) -> bool:
        """Whether games are certified; others are planned where it changes."""
        return self._certify

    @certify.setter
    def certify(self, wanted: bool):
        self._certify = check.flag(wanted, "certify", LabError)
        self.__dict__.pop("plan", None)

    @functools.cached_property
    def device(self) -> str:
        """The kind of device that plays."""
        return jax.default_backend()

    @functools.cached_property
    def played_on(self) -> str:
        """The device and its host, in words."""
        return pool_of().facts["kind"]

    @functools.cached_property
    def plan(self) -> list[Planned]:
        """All games, in the order of the table."""
        kind = ["game", "certified"] if self.certify else ["game"]
        return [
            Planned(problem, learner, horizon, seed, f"{key}-{horizon}-{seed}")
            for problem in self.sources
            for learner in self.learners
            for played in [self.learner(learner, problem)]
            if played is not None
            for horizon in self.horizons[problem]
            for key in [self._key(*kind, self.device, *self._recognised[problem].game(played, horizon))]
            for seed in self.seeds
        ]

    @functools.cached_property
    def _recognised(self) -> dict[str, Recognised]:
        return {name: Recognised(source, max(self.horizons[name])) for name, source in self.sources.items()}

    def learner(self, name: str, problem: str) -> AbstractLearner | None:
        """The learner of this name on this problem, if there is one."""
        learner = self.learners[name]
        return learner.get(problem) if isinstance(learner, Mapping) else learner

    def missing(self) -> list[Planned]:
        """The games that are not stored yet."""
        stored = self.store.keys("game")
        return [game for game in self.plan if game.key not in stored]

    def run(self, *, quiet: bool = False, client: Any = None, executor: Any = None) -> "Study":
        """Play what is not stored yet: in this process, or elsewhere (docs/cluster.md). The results are the same.

        **Arguments:**

        - `quiet`: no progress.
        - `client`: of a Dask cluster, whose workers play.
        - `executor`: an executor of concurrent.futures.
        """
        use_compilation_cache()
        pool = pool_of(client, executor)
        self.device, self.played_on = pool.facts["device"], pool.facts["kind"]
        self.__dict__.pop("plan", None)
        run(self, pool, quiet)
        return self

    def table(self) -> pl.DataFrame:
        """One row for each game that was played, with the figures of its last round; the order is always the same."""
        return rows.table(self._stored())

    def curves(self) -> pl.DataFrame:
        """Regret and its proven bound, violation, multiplier and score over the rounds, thinned, for every game."""
        return rows.curves(self._stored())

    def seconds(self) -> pl.DataFrame:
        """Measured time of a round in a batch, without compilation, by problem, learner and horizon."""
        return rows.seconds(self._stored())

    def report(self, **options: Any) -> Path:
        """Figures, tables and one HTML page in `out`; returns the page's path."""
        from .report.write import write_report

        if self.out is None:
            raise LabError("a report needs a folder; give the Study out=")
        return write_report(self, **options)

    def latex(self, horizon: int | str | None = None) -> str:
        """Tables for papers (package booktabs) with captions and the best in bold.

        `horizon` is one that was played, "all", or None for each problem's largest.
        """
        from .report.write import table_for_papers

        return table_for_papers(self, horizon)

    def __repr__(self):
        try:
            return str(summary(self))
        except CocoaxError:  # a store that is damaged: run() says so
            return super().__repr__()

    def _repr_html_(self):
        with contextlib.suppress(CocoaxError):
            return summary(self).html()

    def _stored(self):
        plan = pl.DataFrame(self.plan, schema=Planned._fields, orient="row")
        stored = together([self.store.read("game"), rows.refused_rows(self.refused)])
        if not len(stored):
            raise LabError("no game was played yet; call run() first")
        return plan.join(stored, on="key", how="inner", maintain_order="left")

    def _key(self, *parts) -> str:
        random = jax.config.jax_default_prng_impl, jax.config.jax_threefry_partitionable  # pyright: ignore
        return of_parts(library(), jax.__version__, random, str(jnp.result_type(float)), self.tol, *parts).digest

    def comparator_keys(self, problem: str, seeds: Sequence[int], horizons: Sequence[int]) -> dict[int, dict[int, str]]:
        """The keys of comparators in the store, by horizon and seed."""
        keys = {T: self._key("comparator", self._recognised[problem].problem(T).digest) for T in horizons}
        return {T: {seed: f"{key}-{T}-{seed}" for seed in seeds} for T, key in keys.items()}
