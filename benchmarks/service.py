"""How many durable decide+observe pairs a second a service makes, and how long they take.

python -m benchmarks.service [--seconds 10] [--connections 64] [--campaigns 1000] [--folder .]

Serves examples/service.py (ten segments, Auto) with a file and without one, from a second process on loopback.
To load a service of your own, which must run already:

python -m benchmarks.service --url http://127.0.0.1:8000 --round round.json [--token TOKEN]

A pair is POST /decide and then POST /observe with the `rounds` of the first answer as `at`, two requests. Every
connection has one of them under way at a time. Pairs are timed from the first byte sent to the last one received.
"""

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

ROOT = Path(__file__).parent.parent
WARM = 2.0  # seconds that do not count


class Connection(asyncio.Protocol):
    """Asks one request at a time. Clients of this kind take little of the time that they measure."""

    def __init__(self, host: str, token: str | None):
        head = f"Host: {host}\r\nContent-Type: application/json\r\n"
        self._head = head + (f"Authorization: Bearer {token}\r\n" if token else "")
        self._seen, self._answer = b"", None

    def connection_made(self, transport):
        self._transport = transport

    def data_received(self, data):
        self._seen += data
        head, found, body = self._seen.partition(b"\r\n\r\n")
        if found:
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n", 1)[0])
            if len(body) >= length:
                self._seen = b""
                self._answer.set_result((int(head[9:12]), body))

    def connection_lost(self, exc):
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError("the service closed a connection"))

    async def post(self, path: str, body: str):
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(f"POST {path} HTTP/1.1\r\n{self._head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        status, answer = await self._answer
        if status != 200:
            raise ConnectionError(f"the service answered {status}: {answer.decode()}")
        return json.loads(answer)


async def load(url: str, token: str | None, rounds: list[str], connections: int, campaigns: int, seconds: float):
    """The times of all pairs, in seconds."""
    address, loop, times = urlsplit(url), asyncio.get_running_loop(), []
    begun = time.perf_counter() + WARM

    async def client(number):
        make = lambda: Connection(address.netloc, token)  # noqa: E731
        _, connection = await loop.create_connection(make, address.hostname, address.port)
        names = [f"campaign {i}" for i in range(number, campaigns, connections)]
        for turn in range(10**9):
            name, sent = names[turn % len(names)], time.perf_counter()
            if sent > begun + seconds:
                return
            decided = await connection.post("/decide", f'{{"name": "{name}"}}')
            body = f'{{"name": "{name}", "rounds": {rounds[turn % len(rounds)]}, "at": {decided["rounds"]}}}'
            await connection.post("/observe", body)
            if sent > begun:
                times.append(time.perf_counter() - sent)

    await asyncio.gather(*(client(number) for number in range(connections)))
    return times


def measured(name: str, times, seconds: float) -> str:
    median, high, most = np.percentile(times, [50, 99, 100]) * 1e3
    return f"| {name} | {len(times) / seconds:,.0f} | {median:.1f} | {high:.1f} | {most:.1f} |"


@contextlib.contextmanager
def served(path: Path | None):
    """The address of a service on this file."""
    environment = os.environ | {"COCOAX_FLEET": "" if path is None else str(path)}
    command = [sys.executable, "-m", "cocoax.cli", "serve", str(ROOT / "examples" / "service.py"), "--port", "0"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        if not said:
            raise SystemExit("the service did not start")
        yield said.split()[-1], process.pid
    finally:
        process.terminate()
        process.wait()


def processor_seconds(process: int) -> float:
    """Of all threads of a process, which does not depend on what else the machine does."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def some_rounds() -> list[str]:
    draw = np.random.default_rng(0)
    columns = {"value": draw.random((100, 10)), "price": draw.random((100, 10)), "budget": np.full(100, 0.5)}
    return [json.dumps({name: column[i].round(4).tolist() for name, column in columns.items()}) for i in range(100)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--campaigns", type=int, default=1000)
    parser.add_argument("--folder", type=Path, default=Path())
    parser.add_argument("--url")
    parser.add_argument("--token")
    parser.add_argument("--round", type=Path)
    args = parser.parse_args()
    shape = args.connections, max(args.campaigns, args.connections), args.seconds

    def loaded(url, rounds):
        try:
            return asyncio.run(load(url, args.token, rounds, *shape))
        except OSError as error:
            raise SystemExit(f"{url} cannot be loaded: {error}") from None

    print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print(
        "| | pairs a second | median ms | 99% ms | longest ms | processor us a pair |\n|---|---|---|---|---|---|",
        flush=True,
    )
    if args.url is not None:
        rounds = some_rounds() if args.round is None else [args.round.read_text().strip()]
        print(measured(args.url, loaded(args.url, rounds), args.seconds), "|")
        return
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        for title, path in (("a service with a file", Path(name) / "fleet"), ("a service without a file", None)):
            with served(path) as (url, process):
                before = processor_seconds(process)
                times = loaded(url, some_rounds())
                used = (processor_seconds(process) - before) / (args.seconds + WARM) * args.seconds / len(times) * 1e6
                print(measured(title, times, args.seconds), f"{used:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
