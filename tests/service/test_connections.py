"""Clients that send or read slowly are cut off, and others are served meanwhile."""

import asyncio
import contextlib
import json
import socket
import threading
import time

import pytest
import uvicorn

from cocoax.service import connections

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
LARGE = 1 << 23  # bytes: more than the system takes from a program that nobody listens to


async def app(scope, receive, send):
    """Answers without waiting for the body; /large with a large answer, /later after a moment, /again with the body."""
    body = b"x" * (LARGE if scope["path"] == "/large" else 3)
    if scope["path"] == "/later":
        await asyncio.sleep(0.1)
    if scope["path"] == "/again":
        body, more = b"", True
        while more:
            part = await receive()
            body, more = body + part["body"], part["more_body"]
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextlib.contextmanager
def served(**options):
    """The address of a server in a thread of this process."""
    config = uvicorn.Config(app, http=connections.Protocol, lifespan="off", log_config=None, **options)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()
        finally:
            server.should_exit = True
            thread.join()


def read(client):
    """All that comes until the other side ends the connection."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := client.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


SLOW = {
    "nothing": [],
    "half of the headers": [b"GET / HTTP/1.1\r\nHos"],
    "headers again": [GET, b"GET / HTTP/1.1\r\nHos"],
    "line ends": [GET, b"\r\n"],
    "half of a body that was refused": [b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n", b"x"],
}


@pytest.mark.parametrize("said", SLOW)
def test_a_client_that_stops_sending_is_cut_off(monkeypatch, said):
    monkeypatch.setattr(connections, "_SECONDS", 0.2)
    with served(timeout_keep_alive=60) as address, socket.create_connection(address, timeout=10) as slow:
        for part in SLOW[said]:
            slow.sendall(part)
            time.sleep(0.05)
        answered = read(slow)  # a timeout of the socket's would be an error
        assert answered.count(b"200 OK") == (bool(SLOW[said]) and said != "half of the headers")


def test_a_client_that_sends_without_a_pause_is_cut_off_too(monkeypatch):
    """Each byte ends uvicorn's own deadline."""
    monkeypatch.setattr(connections, "_SECONDS", 0.3)
    began = time.monotonic()
    with served(timeout_keep_alive=60) as address, socket.create_connection(address, timeout=10) as slow:
        slow.sendall(SLOW["half of a body that was refused"][0])
        with contextlib.suppress(ConnectionError):
            while time.monotonic() < began + 10:
                slow.sendall(b"x")
                time.sleep(0.15)
        assert time.monotonic() < began + 5


def test_a_client_that_does_not_read_is_cut_off_and_one_that_reads_is_not(monkeypatch):
    monkeypatch.setattr(connections, "_SECONDS", 0.3)
    large = GET.replace(b"/ HTTP", b"/large HTTP")
    with served() as address, socket.create_connection(address, timeout=10) as deaf:
        deaf.sendall(large)
        with socket.create_connection(address, timeout=10) as other:
            other.sendall(large.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            whole, part = 0, b"x"
            while part:
                part = other.recv(1 << 17)
                whole += len(part)
                time.sleep(0.01)  # 0.6 s for all of it, in pieces
        assert whole > LARGE
        assert len(read(deaf)) < LARGE


def test_too_many_connections_and_other_protocols_get_a_sentence(monkeypatch):
    monkeypatch.setattr(connections, "_MOST", 2)
    with served() as address, contextlib.ExitStack() as stack:
        kept = [stack.enter_context(socket.create_connection(address, timeout=10)) for _ in range(2)]
        for one in kept:
            one.sendall(GET)
            assert one.recv(1 << 12).startswith(b"HTTP/1.1 200")
        with socket.create_connection(address, timeout=10) as late:
            head, _, body = read(late).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503") and "2 connections" in json.loads(body)["error"]
        kept[0].sendall(b"\x16\x03\x01 as TLS begins\r\n\r\n")
        head, _, body = read(kept[0]).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400") and "not HTTP" in json.loads(body)["error"]


LATER = b"POST /later HTTP/1.1\r\nHost: x\r\n"
TOO_MUCH = {
    "a header": [b"GET / HTTP/1.1\r\nX: ", b"x" * (1 << 20)],
    "headers": [b"GET / HTTP/1.1\r\n", b"X: y\r\n" * (1 << 18)],
    "what follows the last piece of a body": [
        LATER + b"Transfer-Encoding: chunked\r\n\r\n0\r\n",
        b"X: y\r\n" * (1 << 18),
    ],
}


@pytest.mark.parametrize("what", TOO_MUCH)
def test_a_client_that_sends_headers_without_end_is_cut_off(what):
    with served() as address, socket.create_connection(address, timeout=10) as client:
        with contextlib.suppress(ConnectionError):
            for part in TOO_MUCH[what]:
                client.sendall(part)
                time.sleep(0.05)
        assert read(client).startswith(b"HTTP/1.1 431")


def test_headers_and_bodies_in_pieces_are_no_headers_without_end():
    """Of each request 40,000 bytes of headers and 100,000 of a body, where 65,536 beside a body are too many."""
    body = b"y" * 100_000
    with served() as address, socket.create_connection(address, timeout=10) as client:
        for kept in (b"keep-alive", b"close"):
            head = b"POST /again HTTP/1.1\r\nHost: x\r\nConnection: " + kept
            for piece in (head, b"\r\nX: " + b"x" * 40_000, b"\r\nContent-Length: 100000\r\n\r\n", body):
                client.sendall(piece)
                time.sleep(0.02)
        assert read(client).count(b"\r\n\r\n" + body) == 2


def test_a_request_is_not_answered_twice_where_its_end_is_too_long():
    with served() as address, socket.create_connection(address, timeout=10) as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 200 OK")
        with contextlib.suppress(ConnectionError):
            client.sendall(b"X: y\r\n" * (1 << 14))
        assert b"HTTP/1.1" not in read(client)


NOT_HTTP = {"garbage": b"\x00 not HTTP\r\n\r\n", "a body": LATER + b"Transfer-Encoding: chunked\r\n\r\nno size\r\n"}


@pytest.mark.parametrize("what", NOT_HTTP)
def test_what_is_not_http_is_not_the_answer_to_the_request_before(what):
    with served() as address, socket.create_connection(address, timeout=10) as client:
        client.sendall(LATER + b"Content-Length: 0\r\n\r\n" + NOT_HTTP[what])
        assert read(client).startswith(b"HTTP/1.1 200 OK")


def test_an_offer_of_another_protocol_costs_no_body():
    """As that of HTTP/2 which Java's own client makes."""
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\n"
    with served() as address, socket.create_connection(address, timeout=10) as client:
        for end in (b"", b"Connection: close\r\n"):
            client.sendall(b"POST /again HTTP/1.1\r\nHost: x\r\n" + offer + end + b"Content-Length: 3\r\n\r\nabc")
        assert read(client).count(b"\r\n\r\nabc") == 2
