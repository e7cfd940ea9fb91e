"""A service in this process, asked without sockets, and one in a process of its own."""

import asyncio
import contextlib
import http.client
import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import jax
import numpy as np
import session_tools as tools
from prometheus_client.parser import text_string_to_metric_families

import cocoax as cx
from cocoax.service.access import Tokens
from cocoax.service.app import service

TOKENS = {"play": "p" * 20, "read": "r" * 20, "admin": "a" * 20}
FILE = """
import sys
sys.path.insert(0, {tools!r})
import jax
jax.config.update("jax_enable_x64", True)
import service_tools
fleet = service_tools.{kind}({path!r}, **{settings!r})
example = service_tools.EXAMPLES[{kind!r}]
"""
EXAMPLES = {"fleet": tools.a_round(0), "offers": {"v": 1.0, "c": 0.4}}


def fleet(path=None, **options):
    learner, key = tools.learner("DPP"), jax.random.key(3)
    return cx.Fleet(tools.problem(), learner, path, key=key, horizon=tools.HORIZON, **options)


def offers(path=None, **options):
    """Decides after requests, within a budget of 1, or of the campaign's own."""
    problem = cx.Problem(
        cx.domains.ProbabilitySimplex(2),
        lambda x, r: -r["v"] * x[1],
        lambda x, r: r["c"] * x[1] - 0.1,
        request=True,
    )
    learner = cx.learners.Budgeted(
        cx.learners.DualMirrorDescent(0.01), spend=lambda x, r: r["c"] * x[1], budget=1.0, safe=[1.0, 0.0]
    )
    return cx.Fleet(problem, learner, path, key=jax.random.key(0), **options)


def a_round(number):
    return {name: column.tolist() for name, column in tools.a_round(number).items()}


def stacked(numbers):
    return {name: np.stack([tools.a_round(i)[name] for i in numbers]).tolist() for name in tools.a_round(0)}


class Client:
    """Asks an application in this process."""

    def __init__(self, app, **headers):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers)
        self.app, self.batcher = app, app.app.state.batcher

    async def post(self, path, **content):
        return await self.http.post(path, json=content)

    async def get(self, path):
        return await self.http.get(path)


async def at_once(client, posts, count=None):
    """The answers to requests of which so many, or all, wait when the worker takes the first."""
    it = client.batcher.fleet
    with it._guard.alone(it):  # the worker waits here
        before = client.batcher._queue  # the worker makes a new one when it takes a batch
        first = asyncio.create_task(client.post("/decide", name="blocks the worker"))
        await _until(lambda: client.batcher._queue is not before)
        tasks = [asyncio.create_task(post) for post in posts]
        await _until(lambda: client.batcher.waiting == (len(tasks) if count is None else count))
        await asyncio.sleep(0.05)
    await first
    return await asyncio.gather(*tasks)


async def _until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


def asked(function, it=None, *, tokens=None, role=None, **limits):
    """What `await function(client)` returns, on a service of this fleet, which stays open."""
    it = fleet() if it is None else it

    async def run():
        app = service(it, Tokens((tokens or {}).items()), **limits)
        headers = {} if role is None else {"authorization": f"Bearer {TOKENS[role]}"}
        client = Client(app, **headers)
        client.batcher.start()
        async with client.http:
            try:
                return await function(client)
            finally:
                await asyncio.to_thread(client.batcher.stop)

    return asyncio.run(run())


@contextlib.contextmanager
def process(folder, path, *options, kind="fleet", file=FILE, **settings):
    """(a service in a process of its own, its port)."""
    served = Path(folder) / "served.py"
    parts = {"tools": str(Path(__file__).parent), "path": str(path), "kind": kind, "settings": settings}
    served.write_text(file.format(**parts) if file is FILE else file)
    command = [sys.executable, "-m", "cocoax.cli", "serve", str(served), "--port", "0", *options]
    with open(Path(folder) / "log", "a") as log:
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ)
    try:
        said = running.stdout.readline()
        assert said, (Path(folder) / "log").read_text()
        yield running, int(said.rpartition(":")[2])
    finally:
        running.kill()
        running.wait()
        running.stdout.close()


def sentence(answer, status):
    """The one sentence of a refusal."""
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"] and "\n" not in answer.json()["error"], answer.text
    assert "Traceback" not in answer.text
    return answer.json()["error"]


def figures(text):
    """The samples of /metrics, by name and labels."""
    families = text_string_to_metric_families(text)
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}


def post(connection: http.client.HTTPConnection, path, content):
    connection.request("POST", path, json.dumps(content), {"content-type": "application/json"})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())
