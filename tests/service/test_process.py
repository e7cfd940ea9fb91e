"""`cocoax serve` as a process: killed under load, stopped, and disturbed by clients."""

import http.client
import json
import os
import signal
import socket
import sys
import threading

import pytest
import service_tools as tools

import cocoax.service
from cocoax import cli
from cocoax.service import access

NAMES = [f"c{i}" for i in range(6)]


def load(port, name, acknowledged):
    """Pairs of one campaign until the service is gone; a retried round is sent twice now and then."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        while True:
            _, decided = tools.post(connection, "/decide", {"name": name})
            content = {"name": name, "rounds": tools.a_round(decided["rounds"]), "at": decided["rounds"]}
            for _ in range(1 + decided["rounds"] % 3 // 2):
                status, answer = tools.post(connection, "/observe", content)
                assert (status, answer["rounds"]) == (200, decided["rounds"] + 1)
            acknowledged[name] = answer["rounds"]
    except (OSError, http.client.HTTPException, json.JSONDecodeError):
        connection.close()


def killed_after(count, more, running, threads):
    """Kill the service when `count()` is so much more than now."""
    goal = count() + more
    for thread in threads:
        thread.start()
    while count() < goal and any(thread.is_alive() for thread in threads):
        threads[0].join(0.01)
    running.kill()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_under_load_every_acknowledged_pair_is_there(tmp_path, kills):
    acknowledged = dict.fromkeys(NAMES, 0)
    for kill in range(kills):
        with tools.process(tmp_path, tmp_path / "fleet") as (running, port):
            threads = [threading.Thread(target=load, args=(port, name, acknowledged)) for name in NAMES]
            killed_after(lambda: sum(acknowledged.values()), 60 + 7 * kill, running, threads)
    with tools.fleet(tmp_path / "fleet") as it, tools.fleet() as alone:
        for name in NAMES:
            rounds = int(it.rounds([name])[0])
            assert 0 <= rounds - acknowledged[name] <= kills
            for number in range(rounds):  # each once, in order: the state is that of a fleet without a service
                alone.observe([name], {key: [value] for key, value in tools.a_round(number).items()})
        assert it.decide(NAMES).tobytes() == alone.decide(NAMES).tobytes()


def order(port, name, done):
    """Orders of one campaign until the service is gone. Two wait at a time; what was not answered is sent again."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def decide(number):
        asked = {"name": name, "ticket": f"order {number}", "requests": {"v": 1.0 + number % 3, "c": 0.01}}
        return tools.post(connection, "/decide", asked)[1]["decisions"]

    try:
        while True:
            while len(done["decisions"]) < done["observed"] + 2:
                done["decisions"].append(decide(len(done["decisions"])))
            assert decide(done["observed"] + 1) == done["decisions"][-1]
            for _ in range(1 + done["observed"] % 2):
                ticket = f"order {done['observed']}"
                status, answer = tools.post(connection, "/observe", {"name": name, "ticket": ticket})
                assert (status, answer["rounds"]) == (200, done["observed"] + 1)
            done["observed"] += 1
    except (OSError, http.client.HTTPException, json.JSONDecodeError):
        connection.close()


@pytest.mark.slow
def test_killed_with_tickets_out_each_order_keeps_its_decision_and_counts_once(tmp_path):
    done = {name: {"decisions": [], "observed": 0} for name in NAMES}
    for kill in range(10):
        with tools.process(tmp_path, tmp_path / "fleet", kind="offers", pending=3) as (running, port):
            threads = [threading.Thread(target=order, args=(port, name, done[name])) for name in NAMES]
            killed_after(lambda: sum(one["observed"] for one in done.values()), 30 + 7 * kill, running, threads)
    with tools.offers(tmp_path / "fleet", pending=3) as it:
        for name, one in done.items():
            rounds = int(it.rounds([name])[0])
            assert 0 <= rounds - one["observed"] <= 1  # one may have been observed, and not answered
            spent = 0.01 * sum(decision[1] for decision in one["decisions"][:rounds])
            assert it.budgets([name])["spent"].item() == pytest.approx(spent, rel=1e-12)


def test_it_stops_on_sigterm_with_a_snapshot_and_slow_clients_do_not_stop_it(tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text(f"# roles\nplay {tools.TOKENS['play']}\nadmin {tools.TOKENS['admin']}\n")
    with tools.process(tmp_path, tmp_path / "fleet", "--tokens", str(tokens), "--log-all") as (running, port):
        slow = socket.create_connection(("127.0.0.1", port))
        slow.sendall(b"POST /decide HTTP/1.1\r\nHost: x\r\n")  # and nothing more
        raw = socket.create_connection(("127.0.0.1", port))
        raw.sendall(b"\x00\x01 not HTTP\r\n\r\n")
        assert raw.recv(1000).startswith(b"HTTP/1.1 400")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        assert tools.post(connection, "/decide", {"name": "a"})[0] == 401
        headers = {"content-type": "application/json", "authorization": f"Bearer {tools.TOKENS['play']}"}
        connection.request("POST", "/observe", json.dumps({"name": "a", "rounds": tools.a_round(0)}), headers)
        assert json.loads(connection.getresponse().read())["rounds"] == 1
        headers |= {"connection": "Upgrade, HTTP2-Settings", "upgrade": "h2c"}  # Java's own client offers this
        connection.request("POST", "/decide", json.dumps({"name": "a"}), headers)
        assert json.loads(connection.getresponse().read())["rounds"] == 1
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) in (0, -signal.SIGTERM)
        for each in (slow, raw, connection):
            each.close()
    assert not (tmp_path / "fleet-wal").exists()  # closed, not only ended
    with tools.fleet(tmp_path / "fleet") as it:
        assert it.rounds(["a"]) == 1 and it._durable._last_snapshot == it._durable._journal.last
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [line["status"] for line in lines if line["message"] == "request"] == [401, 200, 200]
    assert tools.TOKENS["play"] not in (tmp_path / "log").read_text()


@pytest.fixture
def run(monkeypatch, capsys):
    def run(*words):
        monkeypatch.setattr(sys, "argv", ["cocoax", "serve", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1, said
        return said

    return run


def test_what_a_user_can_mend_is_one_sentence(run, tmp_path, monkeypatch):
    file, tokens = tmp_path / "served.py", tmp_path / "tokens"
    assert "there is no file" in run(file)
    file.write_text("import cocoax")
    assert "does not define fleet" in run(file)
    file.write_text("1 / 0")
    assert "ZeroDivisionError" in run(file)
    assert "tokens must guard a service on 0.0.0.0" in run(file, "--host", "0.0.0.0")
    for text, part in (
        ("read short", "16 or more"),
        ("root " + "x" * 20, "no role 'root'"),
        ("", "a role and a token"),
    ):
        tokens.write_text(text)
        assert part in run(file, "--tokens", tokens)
    assert "cannot be read" in run(file, "--tokens", tmp_path / "none")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "cocoax.service.run", raising=False)
    monkeypatch.delattr(cocoax.service, "run", raising=False)
    assert 'pip install "cocoax[serve]"' in run(file)


def test_every_limit_of_the_command_reaches_the_service(monkeypatch):
    found = {}
    monkeypatch.setattr("cocoax.service.run.serve", lambda *_, **limits: found.update(limits))
    limits = ["--body", "1", "--queue", "2", "--campaigns", "3", "--log-all"]
    monkeypatch.setattr(sys, "argv", ["cocoax", "serve", "served.py", *limits])
    with pytest.raises(SystemExit):
        cli.main()
    given = {"largest_body": 1, "longest_queue": 2, "most_campaigns": 3, "log_all": True}
    assert found == given


def test_tokens_come_from_the_environment_too():
    tokens = access.tokens_from(None, {"COCOAX_TOKEN_READ": "r" * 16, "PATH": os.defpath})
    tokens.check("read", b"Bearer " + b"r" * 16)
    with pytest.raises(Exception, match="play is needed"):
        tokens.check("play", b"bearer " + b"r" * 16)
    assert not access.tokens_from(None, {})
