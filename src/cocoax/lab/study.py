"""Many games: every learner on every problem, against the same rounds."""

import contextlib
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl

from .. import __version__
from .. import _check as check
from .._fingerprint import fingerprint
from ..errors import CocoaxError, LabError, ProblemError
from ..learners.base import AbstractLearner
from ._games import Batch, chunk_size
from ._rows import FIGURES, comparator_row, game_rows, refused_rows, stored_comparator
from .progress import Reporter
from .sources import as_source
from .store import Memory, Store, together


class Planned(NamedTuple):
    """One game of a study, and under which key its result is stored."""

    problem: str
    learner: str
    horizon: int
    seed: int
    key: str


class Study:
    """Every learner on every problem, for every horizon and seed.

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
        self.sources = {str(name): as_source(name, each) for name, each in _named(problems, "problem").items()}
        self.learners = {str(name): each for name, each in _named(learners, "learner").items()}
        for name, learner in self.learners.items():
            for each in learner.values() if isinstance(learner, Mapping) else [learner]:
                check.instance(each, AbstractLearner, LabError, f"{name!r} must be one of cocoax.learners")
        self.horizons = {name: _numbers(_of(horizons, name), "horizons", 1) for name in self.sources}
        self.seeds = _numbers(seeds, "seeds", 0)
        self.tol = tol
        self.out = None if out is None else Path(out)
        self.store = Memory() if out is None else Store(Path(out) / "store")
        self.refused: dict[str, str] = {}  # why games could not be played, by key; not stored, since it may be mended

    @functools.cached_property
    def plan(self) -> list[Planned]:
        """All games, in the order of the table."""
        sources = {name: fingerprint(each) for name, each in self.sources.items()}
        return [
            Planned(problem, learner, horizon, seed, self._key("game", sources[problem], played, horizon, seed))
            for problem in self.sources
            for learner in self.learners
            for played in [fingerprint(each) for each in [self.learner(learner, problem)] if each is not None]
            for horizon in self.horizons[problem]
            for seed in self.seeds
        ]

    def learner(self, name: str, problem: str) -> AbstractLearner | None:
        """The one that plays the problem under this name, if any does."""
        found = self.learners[name]
        return found.get(problem) if isinstance(found, Mapping) else found

    def missing(self) -> list[Planned]:
        """The games that are not stored yet."""
        stored = self.store.keys("game")
        return [game for game in self.plan if game.key not in stored]

    def run(self, *, quiet: bool = False, backwards: bool = False) -> "Study":
        """Play what is not stored yet. Two processes, one of them `backwards`, meet in the middle."""
        missing = self.missing()[:: -1 if backwards else 1]
        with Reporter(sum(game.horizon for game in missing), quiet) as reporter:
            for problem in dict.fromkeys(game.problem for game in missing):
                self._run_problem(problem, [game for game in missing if game.problem == problem], reporter)
        return self

    def table(self) -> pl.DataFrame:
        """One row a game that was played: what was played, and the figures of its last round. Always the same."""
        return self._stored().select("problem", "learner", "horizon", "seed", *FIGURES)

    def curves(self) -> pl.DataFrame:
        """Regret, violation and multiplier over the rounds, thinned, for every game."""
        lists = ["round", "regret", "violation", "multiplier"]
        rows = self._stored().filter(pl.col("reason").is_null())
        rows = rows.select("problem", "learner", "horizon", "seed", *(pl.col(f"{x}_curve").alias(x) for x in lists))
        return rows.explode(lists)

    def seconds(self) -> pl.DataFrame:
        """Measured time of a round in a batch, without compilation, by problem, learner and horizon."""
        rows = self._stored().filter(pl.col("reason").is_null())
        return rows.group_by("problem", "learner", "horizon", maintain_order=True).agg(pl.col("seconds").median())

    def report(self, **options) -> Path:
        """Figures, tables and one HTML page in `out`; returns the page's path."""
        from .report import write_report

        if self.out is None:
            raise LabError("a report needs a folder; give the Study out=")
        return write_report(self, **options)

    def _stored(self):
        plan = pl.DataFrame(self.plan, schema=Planned._fields, orient="row")
        rows = together([self.store.read("game"), refused_rows(self.refused)])
        if not len(rows):
            raise LabError("no game was played yet; call run() first")
        return plan.join(rows, on="key", how="inner", maintain_order="left")

    def _key(self, *parts):
        random = jax.config.jax_default_prng_impl, jax.config.jax_threefry_partitionable  # pyright: ignore
        device = jax.default_backend(), str(jnp.result_type(float))
        return fingerprint(__version__, jax.__version__, random, device, self.tol, *parts)

    def _run_problem(self, name, todo, reporter):
        source, longest = self.sources[name], max(self.horizons[name])
        with _blamed(name):
            first = source.draw(todo[0].seed, longest)
        _check_rounds(name, first, longest)
        size, known = chunk_size(first, longest), {todo[0].seed: first}
        for i in range(0, len(self.seeds), size):
            chunk = set(self.seeds[i : i + size])
            games = [game for game in todo if game.seed in chunk]
            seeds = sorted({game.seed for game in games})
            reporter.now(f"{name}: drawing {len(seeds)} instances")
            with _blamed(name):
                drawn = {seed: known.pop(seed, None) or source.draw(seed, longest) for seed in seeds}
            comparators = self._comparators(name, drawn, list(dict.fromkeys(game.horizon for game in games)), reporter)
            self._run_games(name, games, drawn, comparators, reporter)

    def _run_games(self, name, games, drawn, comparators, reporter):
        """One batch after the other: two compiled programs at a time can wait for each other for ever on CPUs."""
        batches: dict[tuple, list[Planned]] = {}
        for game in games:
            batches.setdefault((game.learner, game.horizon), []).append(game)
        stacked = {}
        for (learner, horizon), batch in batches.items():
            reporter.now(f"{name}: {learner}, T = {horizon}")
            reporter.advance(horizon * len(batch))
            seeds = tuple(sorted(game.seed for game in batch))
            if self.store.keys("game").issuperset(game.key for game in batch):  # by another process
                continue
            if seeds not in stacked:
                stacked[seeds] = Batch([drawn[seed] for seed in seeds], list(seeds))
            keys = {game.seed: game.key for game in batch}
            try:
                record = stacked[seeds].play(self.learner(learner, name), horizon)
            except Exception as error:  # the learner's own, or the problem's: the others go on
                self.refused |= dict.fromkeys(keys.values(), _told(error))
                continue
            against = [comparators[seed, horizon] for seed in seeds]
            self.store.append("game", game_rows([keys[seed] for seed in seeds], record, against))

    def _comparators(self, name, drawn, horizons, reporter):
        """Of all these seeds and horizons, from the store where they are there."""
        source = fingerprint(self.sources[name])
        keys = {(seed, T): self._key("comparator", source, T, seed) for T in horizons for seed in drawn}
        stored = {}
        for horizon in horizons:
            if not stored.keys() >= {keys[seed, horizon] for seed in drawn}:  # another process may have found them
                stored = {row["key"]: row for row in self.store.read("comparator").iter_rows(named=True)}
            missing = [seed for seed in drawn if keys[seed, horizon] not in stored]
            rows = []
            for seed in missing:
                reporter.now(f"{name}: best decision in hindsight, T = {horizon}")
                try:
                    found = drawn[seed].comparator(horizon, self.tol)
                except CocoaxError as error:  # no decision meets the constraints, or a round is not finite
                    found = str(error)
                rows.append(comparator_row(keys[seed, horizon], found))
            if rows:
                frame = pl.concat(rows, how="diagonal_relaxed")
                self.store.append("comparator", frame)
                stored |= {row["key"]: row for row in frame.iter_rows(named=True)}
        return {which: stored_comparator(stored[key]) for which, key in keys.items()}


def _told(error: Exception) -> str:
    """The error in one line; its kind too, where it is not one of ours."""
    text = " ".join(str(error).split("\n--------------------")[0].split())
    return text if isinstance(error, CocoaxError) else f"{type(error).__name__}: {text}"


@contextlib.contextmanager
def _blamed(problem):
    """Around the code that makes a problem and its rounds."""
    try:
        yield
    except Exception as error:
        raise LabError(f"the problem {problem!r} raised {_told(error)}; mend it and run again") from error


def _check_rounds(name, drawn, longest):
    lengths = {np.shape(leaf)[0] if np.ndim(leaf) else 0 for leaf in jax.tree.leaves(drawn.rounds)}
    if min(lengths, default=0) < longest:
        raise ProblemError(
            f"the problem {name!r} has {min(lengths, default=0)} rounds, but a horizon of {longest} was asked"
        )


def _named(given, what) -> Mapping:
    if not isinstance(given, Mapping) or not given:
        found = "none" if given == {} else check.described(given)
        raise LabError(f"{what}s must be a dict of at least one {what} by its name, got {found}")
    if len({str(name) for name in given}) < len(given):
        raise LabError(f"two {what}s have the same name")
    return given


def _of(horizons, name):
    if not isinstance(horizons, Mapping):
        return horizons
    if name not in horizons:
        raise LabError(f"horizons are given by problem, but none for {name!r}")
    return horizons[name]


def _numbers(values, name, low) -> list[int]:
    if isinstance(values, str) or any(isinstance(value, bool) for value in np.atleast_1d(values).tolist()):
        raise LabError(f"{name} must be a list of whole numbers, got {check.described(values)}")
    try:
        found = sorted({check.whole(value, name, LabError, low) for value in values})
    except TypeError:
        raise LabError(f"{name} must be a list of whole numbers, got {check.described(values)}") from None
    if not found:
        raise LabError(f"{name} must hold at least one number")
    return found
