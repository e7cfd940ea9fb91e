"""Studies on a Dask cluster of three processes: the table of one process, to the bit, or one sentence."""

import concurrent.futures
import contextlib
import functools
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import dask.config
import jax
import numpy as np
import polars as pl
import psutil
import pytest
from cluster_tools import Deadly, Picky

import cocoax as cx
from cocoax import cli
from cocoax.lab import Study
from cocoax.lab.run import cluster as clusters
from cocoax.lab.run import pools, workbench
from cocoax.lab.run.cluster import DEVICE_LOCK

LEARNERS = {"stay": cx.learners.Stay(), "OCG": cx.learners.Blocks(cx.primal.OCG())}
FREE = cx.Problem(cx.domains.ProbabilitySimplex(3), lambda x, r: r @ x)  # no constraint, and no constants for OCG
PROBLEMS = {"simplex": functools.partial(cx.problems.simplex, n=4), "lambda": lambda key: cx.problems.simplex(key, n=3)}
PROBLEMS["free"] = FREE, np.ones((20, 3))
RACE = """
import cocoax as cx
problems = {"simplex": lambda key: cx.problems.simplex(key, n=4)}
learners = {"stay": cx.learners.Stay(), "OCG": cx.learners.Blocks(cx.primal.OCG())}
horizons, seeds = %s, range(7)
"""


def small(out=None, **changes):
    given = {"problems": PROBLEMS, "learners": LEARNERS, "horizons": [8, 20], "seeds": range(7)}
    return Study(**{**given, **changes}, out=out)


@pytest.fixture(scope="module")
def client():
    with clusters.started(3, None) as started:
        yield started()


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    study = small(tmp_path_factory.mktemp("alone")).run(quiet=True)
    study.report()
    return study


def figures(study):
    return {file.name: file.read_bytes() for file in (study.out / "figures").iterdir()}


def test_workers_play_and_draw_what_one_process_does(client, alone, tmp_path):
    study = small(tmp_path).run(quiet=True, client=client)
    assert study.table().equals(alone.table()) and study.curves().equals(alone.curves())
    study.report(client=client)
    assert figures(study) == figures(alone)
    left = {(game.problem, game.learner) for game in small(tmp_path).missing()}
    assert left == {("free", "OCG")}  # which has no constants: for one process all others are played, too


def test_large_data_travel_once_and_without_a_warning(client):
    pool, data = pools.Dask(client), bytes(11_000_000)  # Dask warns of 10 MB
    shared = pool.share(data)
    assert [pool.call(len, shared).result() for _ in range(2)] == 2 * [len(data)]


def test_nobody_is_called_gone_while_the_client_renews_what_it_keeps_of_the_scheduler(client, monkeypatch):
    """Dask's client does so every two seconds, without the workers."""
    pool = pools.Dask(client)
    assert pool.facts["device"] == "cpu"
    monkeypatch.setattr(client, "scheduler_info", lambda: {"workers": {}})
    assert pool.gone() == []
    pool._names["tcp://127.0.0.1:9"] = "a (tcp://127.0.0.1:9)"
    assert pool.gone() == ["a (tcp://127.0.0.1:9)"] and pool.gone() == []


def test_only_the_loopback_interface_listens(client):
    workers = client.run(os.getpid)
    assert len(workers) == 3
    for process in map(psutil.Process, [os.getpid(), *workers.values()]):
        listening = [each.laddr.ip for each in process.net_connections() if each.status == "LISTEN"]
        assert set(listening) == {"127.0.0.1"}, process


def test_a_worker_that_is_killed_in_a_batch_is_named_and_replaced(client, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(pools, "_LOOK", 0.1)
    (deaths := tmp_path / "deaths").mkdir()
    problem = {"simplex": PROBLEMS["simplex"]}
    learners = {"stay": cx.learners.Stay(), "deadly": Deadly(str(deaths))}
    expected = small(problems=problem, learners=learners).run(quiet=True).table()
    (deaths / "1").touch()
    study = small(tmp_path / "out", problems=problem, learners=learners).run(client=client)
    assert not any(deaths.iterdir())
    assert study.table().equals(expected)
    assert "is gone; what it was doing is done elsewhere" in capsys.readouterr().err


@pytest.mark.slow
def test_a_batch_that_kills_every_worker_is_a_row_with_a_reason(client, tmp_path):
    (deaths := tmp_path / "deaths").mkdir()
    for i in range(20):
        (deaths / str(i)).touch()
    learners = {"stay": cx.learners.Stay(), "deadly": Deadly(str(deaths))}
    table = small(learners=learners, horizons=[8], problems={"one": PROBLEMS["simplex"]}).run(quiet=True, client=client)
    reasons = table.table().group_by("learner", maintain_order=True).agg(pl.col("reason").unique())
    by_learner = dict(reasons.iter_rows())
    assert by_learner["stay"] == [None]
    assert "4 workers died while they played it, the last was tcp://127.0.0.1" in by_learner["deadly"][0]


@pytest.mark.slow
def test_a_worker_that_does_not_answer_is_given_up(alone, tmp_path, capsys):
    """As one behind a cut network. Dask waits five minutes for a sign of it; here four seconds."""
    with dask.config.set({"distributed.scheduler.worker-ttl": "4s"}), clusters.started(3, None) as started:
        client = started()
        silent = next(iter(client.run(os.getpid).values()))
        timer = threading.Timer(0.5, os.kill, (silent, signal.SIGSTOP))
        timer.start()
        try:
            study = small(tmp_path).run(client=client)
        finally:
            timer.join()
            with contextlib.suppress(ProcessLookupError):
                os.kill(silent, signal.SIGCONT)
    assert study.table().equals(alone.table())
    assert "is gone; what it was doing is done elsewhere" in capsys.readouterr().err


def test_a_learner_that_raises_on_one_problem_stops_nobody(client):
    learners = {"picky": Picky(), "stay": cx.learners.Stay()}
    # with the horizons of `alone`, whose programs are compiled
    expected = small(learners=learners).run(quiet=True).table()
    table = small(learners=learners).run(quiet=True, client=client).table()
    assert table.equals(expected)
    bad = table.filter(pl.col("reason").is_not_null())
    assert set(bad["reason"]) == {"ValueError: not with four"} and len(bad) == 14


def test_a_problem_that_raises_is_named(client, tmp_path):
    def sometimes(key):
        if jax.random.key_data(key)[1] % 2:  # of the seeds 2 and 3
            raise ValueError("no data")
        return cx.problems.simplex(key, n=4)

    seeds = [seed for seed in range(9) if int(jax.random.bits(jax.random.split(jax.random.key(seed), 3)[0]) % 2) == 0]
    study = small(
        tmp_path,
        problems={"good": PROBLEMS["simplex"], "sometimes": sometimes},
        learners={"stay": cx.learners.Stay()},
        seeds=[seeds[0], 1, 2, 3, 4],
    )
    with pytest.raises(cx.LabError, match="the problem 'sometimes' raised ValueError: no data; mend it"):
        study.run(quiet=True, client=client)


@pytest.mark.parametrize(
    "what, value", [("cocoax", "9.9"), ("JAX", "9.9"), ("Python", "2.7"), ("jax_enable_x64", False)]
)
def test_workers_of_another_kind_are_refused(client, tmp_path, monkeypatch, what, value):
    here = workbench.settings()
    monkeypatch.setattr(workbench, "settings", lambda: here | {what: value})
    with pytest.raises(
        cx.LabError, match=rf"the worker .*127.0.0.1.* has {what} .*, but the study has {value}"
    ) as error:
        small(tmp_path).run(quiet=True, client=client)
    assert "\n" not in str(error.value)


def test_workers_that_come_later_are_checked_by_their_tasks():
    with pytest.raises(cx.LabError, match=r"has JAX .*, but the study has 9\.9"):
        workbench.work(workbench.settings() | {"JAX": "9.9"}, b"never read", "play", {})
    with pytest.raises(cx.LabError, match="has device cpu, but the study has gpu"):
        workbench.work(workbench.settings() | {"device": "gpu"}, b"never read", "play", {})


def run_cli(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["cocoax", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code or 0, capsys.readouterr()


def test_the_command_line_finds_a_scheduler(client, tmp_path, monkeypatch, capsys):
    (tmp_path / "race.py").write_text(RACE % "[8, 20]")
    where = client.scheduler.address
    words = ["race", tmp_path / "race.py", "--out", tmp_path / "out", "--quiet"]
    status, _ = run_cli(monkeypatch, capsys, *words, "--cluster", where)
    assert status == 0
    table = pl.read_parquet(tmp_path / "out" / "table.parquet")
    assert len(table) == 28 and table["reason"].is_null().all()
    status, said = run_cli(monkeypatch, capsys, *words, "--resume", "--cluster", where, "--workers", 2)
    assert status == 2 and said.err == "cocoax: give --workers or --cluster, not both\n"
    monkeypatch.setattr(clusters, "_is_installed", lambda: False)
    status, said = run_cli(monkeypatch, capsys, *words, "--resume", "--workers", 2)
    assert status == 2 and 'pip install "cocoax[cluster]"' in said.err


class Threads(concurrent.futures.ThreadPoolExecutor):
    """An executor whose tasks fail as often as is said."""

    def __init__(self, failures=0, damage=0):
        super().__init__(2)
        self.failures, self.damage = failures, damage

    def submit(self, function, *arguments):  # pyright: ignore[reportIncompatibleMethodOverride]
        return super().submit(self.run, function, *arguments)

    def run(self, function, *arguments):
        answer = function(*arguments)
        if function is workbench.work and self.failures > 0:
            self.failures -= 1
            raise RuntimeError("node failure")
        if function is workbench.work and self.damage > 0:
            self.damage -= 1
            return answer._replace(batch=answer.batch._replace(data=answer.batch.data[:-1]))
        return answer


def test_an_executor_plays_what_one_process_does(alone, tmp_path):
    with Threads(failures=2, damage=2) as threads:
        assert small(tmp_path).run(quiet=True, executor=threads).table().equals(alone.table())


def test_an_executor_that_forks_is_refused(tmp_path):
    forks = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(1, forks) as processes, pytest.raises(cx.LabError, match="spawn"):
        small(tmp_path).run(quiet=True, executor=processes)


class Closing(Threads):
    """Takes so many tasks, and then no more, as one whose process died."""

    def __init__(self, tasks):
        super().__init__()
        self.tasks = tasks

    def submit(self, function, *arguments):
        self.tasks -= 1
        if self.tasks < 0:
            raise RuntimeError("shut down")
        return super().submit(function, *arguments)


class Locked:
    def __init__(self):
        self.lock = threading.Lock()

    def __fingerprint__(self):
        return "locked"

    def __call__(self, key):
        return cx.problems.simplex(key, n=4)


def test_an_executor_that_always_fails_is_said_in_one_sentence(tmp_path):
    with pytest.raises(cx.LabError, match=r"T = (8|20): RuntimeError: node failure; what was finished is kept"):
        small(tmp_path).run(quiet=True, executor=Threads(failures=1000))
    with pytest.raises(cx.LabError, match="takes no more tasks: RuntimeError: shut down; what was finished is kept"):
        small(tmp_path).run(quiet=True, executor=Closing(3))
    with pytest.raises(cx.LabError, match="cannot work for cocoax: RuntimeError: shut down"):
        small(tmp_path).run(quiet=True, executor=Closing(0))
    with pytest.raises(cx.LabError, match="executor must be one of"):
        small().run(quiet=True, executor=3)
    with pytest.raises(cx.LabError, match="client must be that of a Dask cluster, got 4"):
        small().run(quiet=True, client=4)
    with pytest.raises(cx.LabError, match="not both"):
        small().run(quiet=True, executor=3, client=4)
    with pytest.raises(cx.LabError, match="cannot be sent to another process"):
        small(problems={"a": Locked()}).run(quiet=True, executor=Threads())


def test_beside_gpus_half_of_the_workers_hold_a_device_each(tmp_path, monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cuda,cpu")
    options = list(clusters._options(7, ["0", "3"], tmp_path))
    held = [each["env"].get("CUDA_VISIBLE_DEVICES") for each in options]
    assert held == ["0", "3", "0", "3", None, None, None]
    assert [each.get("resources") for each in options] == [{"GPU": 1}] * 4 + [None] * 3
    assert [each["env"]["JAX_PLATFORMS"] for each in options] == ["cuda,cpu"] * 4 + ["cpu"] * 3
    reserved = [each["env"].get("XLA_PYTHON_CLIENT_PREALLOCATE") for each in options]
    assert reserved == ["false"] * 4 + [None] * 3
    locks = [each["env"].get(DEVICE_LOCK) for each in options]
    assert locks[0] == locks[2] != locks[1] == locks[3] and locks[4:] == [None] * 3
    assert not any(DEVICE_LOCK in each["env"] for each in clusters._options(4, ["0", "1"], tmp_path))


def start(*words, **options):
    return subprocess.Popen([sys.executable, *map(str, words)], stderr=subprocess.PIPE, text=True, **options)


def finished(*words):
    process = start(*words)
    process.communicate()
    return process.returncode == 0


def wait_for_games(out, number):
    until = time.monotonic() + 600
    while len(list((out / "store").glob("*-game-*.parquet"))) < number:
        assert time.monotonic() < until
        time.sleep(0.02)


LONG = "[*range(10, 30)]"


@pytest.mark.slow
def test_a_scheduler_that_is_killed_ends_the_study_in_one_sentence_and_it_goes_on(tmp_path):
    (tmp_path / "race.py").write_text(RACE % LONG)
    file, processes = tmp_path / "scheduler.json", []
    host = ["--host", "127.0.0.1", "--scheduler-file", file]
    try:
        processes.append(start("-m", "distributed.cli.dask_scheduler", *host, "--no-dashboard", "--port", 0))
        for _ in range(3):
            processes.append(start("-m", "distributed.cli.dask_worker", *host, "--nthreads", 1, "--no-dashboard"))
        while not file.exists():
            time.sleep(0.1)
        time.sleep(1)
        address = pl.read_json(file)["address"][0]
        words = ["-m", "cocoax.cli", "race", tmp_path / "race.py", "--out", tmp_path / "out", "--quiet"]
        study = start(*words, "--cluster", address)
        processes.append(study)
        wait_for_games(tmp_path / "out", 3)
        processes[0].kill()
        _, said = study.communicate(timeout=60)
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert study.returncode == 2 and said.count("\n") == 1, said
    assert said.startswith("cocoax: the scheduler of the cluster is gone; what was finished is kept")
    done = len(list((tmp_path / "out" / "store").glob("*-game-*.parquet")))
    assert 3 <= done < 40
    assert finished(*words, "--resume")
    words[5] = tmp_path / "whole"
    assert finished(*words)
    resumed, whole = (pl.read_parquet(tmp_path / folder / "table.parquet") for folder in ("out", "whole"))
    assert len(whole) == 280 and resumed.equals(whole)


@pytest.mark.slow
def test_ctrl_c_stops_all_processes_and_keeps_what_was_finished(tmp_path):
    (tmp_path / "race.py").write_text(RACE % LONG)
    words = ["-m", "cocoax.cli", "race", tmp_path / "race.py", "--out", tmp_path / "out", "--quiet", "--workers", 2]
    study = start(*words, start_new_session=True)
    wait_for_games(tmp_path / "out", 3)
    children = psutil.Process(study.pid).children(recursive=True)
    assert len(children) >= 2
    os.killpg(study.pid, signal.SIGINT)
    _, said = study.communicate(timeout=60)
    assert study.returncode == 130
    assert said == "cocoax: stopped; what was finished is kept, --resume goes on\n"
    assert not psutil.wait_procs(children, timeout=20)[1]  # those that are still there
    assert finished(*words[:-2], "--resume")
    assert len(pl.read_parquet(Path(tmp_path, "out", "table.parquet"))) == 280
