"""Many games: every learner on every problem, against the same rounds."""

import contextlib
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import polars as pl

from .. import __version__
from ..core import check
from ..core.fingerprint import fingerprint
from ..errors import LabError
from ..learners.base import AbstractLearner
from .arguments import by_name, error_text, naming_problem, of_problem, whole_numbers
from .results import rows
from .results.store import Memory, Store, together
from .run.batch import calls
from .run.comparators import comparators, wait_for
from .run.prefetch import Planned, parts, prefetch
from .run.progress import Reporter
from .run.workers import Stripe, device_lock
from .sources import as_source


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
    ):
        self.sources = {str(name): as_source(name, problem) for name, problem in by_name(problems, "problem").items()}
        self.learners = {str(name): learner for name, learner in by_name(learners, "learner").items()}
        for name, learner in self.learners.items():
            for one in learner.values() if isinstance(learner, Mapping) else [learner]:
                check.instance(one, AbstractLearner, LabError, f"{name!r} must be one of cocoax.learners")
        self.horizons = {name: whole_numbers(of_problem(horizons, name), "horizons", 1) for name in self.sources}
        self.seeds = whole_numbers(seeds, "seeds", 0)
        self.tol = tol
        self.out = None if out is None else Path(out)
        self.store = Memory() if out is None else Store(Path(out) / "store")
        self._shared = False  # whether other processes play too, one at a time, and others find the comparators
        self.refused: dict[str, str] = {}  # why games could not be played, by key; not stored, since it may be mended

    @functools.cached_property
    def device(self) -> str:
        """The kind of device that plays."""
        return jax.default_backend()

    @functools.cached_property
    def plan(self) -> list[Planned]:
        """All games, in the order of the table."""
        sources = {name: fingerprint(source) for name, source in self.sources.items()}
        return [
            Planned(problem, learner, horizon, seed, f"{key}-{horizon}-{seed}")
            for problem in self.sources
            for learner in self.learners
            for played in [self.learner(learner, problem)]
            if played is not None
            for key in [self._key("game", self.device, sources[problem], played)]
            for horizon in self.horizons[problem]
            for seed in self.seeds
        ]

    def learner(self, name: str, problem: str) -> AbstractLearner | None:
        """The learner of this name on this problem, if there is one."""
        learner = self.learners[name]
        return learner.get(problem) if isinstance(learner, Mapping) else learner

    def missing(self) -> list[Planned]:
        """The games that are not stored yet."""
        stored = self.store.keys("game")
        return [game for game in self.plan if game.key not in stored]

    def run(self, *, quiet: bool = False, backwards: bool = False, share: Stripe | None = None) -> "Study":
        """Play what is not stored yet. Two processes, one of them `backwards`, meet in the middle.

        With a `share`, only the games of some learners, in turn with other processes, while still others find
        comparators with `compare`.
        """
        missing = self.missing()[:: -1 if backwards else 1]
        if share is not None:
            missing = [game for game in missing if game.learner in share.of(self.learners)]
        self._shared = share is not None
        with Reporter(sum(game.horizon for game in missing), quiet) as reporter:
            for part in prefetch(parts(self, missing, reporter)):
                self._run_part(part, reporter)
        return self

    def compare(self, share: Stripe) -> None:
        """Find comparators for some seeds, and play nothing.

        Each process begins with another horizon, so that most programs are compiled by another process.
        """
        for name, source in self.sources.items():
            with naming_problem(name):
                drawn = {seed: source.draw(seed, max(self.horizons[name])) for seed in share.of(self.seeds)}
            horizons = self.horizons[name]
            first = share.first * len(horizons) // share.step
            keys = self._comparator_keys(name, drawn, horizons[first:] + horizons[:first])
            self._comparators(name, drawn, keys, Reporter(0, quiet=True))

    def table(self) -> pl.DataFrame:
        """One row for each game that was played, with the figures of its last round; the order is always the same."""
        return rows.table(self._stored())

    def curves(self) -> pl.DataFrame:
        """Regret, violation and multiplier over the rounds, thinned, for every game."""
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

    def _stored(self):
        plan = pl.DataFrame(self.plan, schema=Planned._fields, orient="row")
        stored = together([self.store.read("game"), rows.refused_rows(self.refused)])
        if not len(stored):
            raise LabError("no game was played yet; call run() first")
        return plan.join(stored, on="key", how="inner", maintain_order="left")

    def _key(self, *parts):
        random = jax.config.jax_default_prng_impl, jax.config.jax_threefry_partitionable  # pyright: ignore
        return fingerprint(__version__, jax.__version__, random, str(jnp.result_type(float)), self.tol, *parts)

    def _run_part(self, part, reporter):
        """Games are stored as soon as their comparators are there: other processes may still compute them."""
        horizons = list(dict.fromkeys(T for keys in part.keys.values() for T in keys))
        wanted = self._comparator_keys(part.problem, part.drawn, horizons)
        best, waiting = {}, []  # comparators, and games that wait for theirs

        def find(available):
            missing = {which: key for which, key in wanted.items() if which not in best and key in available}
            best.update(self._comparators(part.problem, part.drawn, missing, reporter))

        for learner, seeds in part.order:
            for played in self._played(part.problem, learner, part.keys[learner, seeds], part.stacked(seeds), reporter):
                find(self.store.keys("comparator") if self._shared else set(wanted.values()))
                waiting = self._keep(waiting + played, best)
        if waiting:
            wait_for(self.store, set(wanted.values()))
            find(set(wanted.values()))
            self._keep(waiting, best)

    def _played(self, name, learner, keys, batch, reporter):
        """One call at a time: on CPUs, two programs that run at once can deadlock."""
        for horizons in calls(list(keys)):
            reporter.now(f"{name}: {learner}, T = {', '.join(map(str, horizons))}")
            reporter.advance(sum(T * len(keys[T]) for T in horizons))
            wanted = {key for T in horizons for key in keys[T].values()}
            if self.store.keys("game") >= wanted:  # by another process
                continue
            try:
                records = batch.play_together(self.learner(learner, name), horizons, self._device_lock)
            except Exception as error:  # of this learner or problem: the others go on
                self.refused |= dict.fromkeys(wanted, error_text(error))
                continue
            yield [(T, keys[T], record) for T, record in zip(horizons, records)]

    def _device_lock(self):
        return device_lock(self.out) if self._shared and self.out is not None else contextlib.nullcontext()

    def _keep(self, played, best):
        """Store games whose comparators are there; returns the others."""
        ready, others = [], []
        for T, keys, record in played:
            if all((seed, T) in best for seed in keys):
                ready.append(rows.game_rows(keys.values(), record, [best[seed, T] for seed in keys]))
            else:
                others.append((T, keys, record))
        if ready:
            self.store.append("game", pl.concat(ready))
        return others

    def _comparator_keys(self, name, seeds, horizons):
        key = self._key("comparator", self.sources[name])
        return {(seed, T): f"{key}-{T}-{seed}" for T in horizons for seed in seeds}

    def _comparators(self, name, drawn, keys, reporter):
        """By seed and horizon, from the store where possible."""

        def report(horizon):
            reporter.now(f"{name}: best decision in hindsight, T = {horizon}")

        return comparators(self.store, keys, drawn, self.tol, report)
