"""What every request passes first: tokens, size and time limits, and one sentence for every error."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.responses import JSONResponse, Response

from .access import PUBLIC, Tokens, check_host, role_of
from .errors import EXTRA_HEADERS, Refused, refused
from .metrics import Metrics
from .rate import RateLimit

_log = logging.getLogger("cocoax.service")
_GUESSES = 20  # wrong tokens a second that one address may try


class Gate:
    """An ASGI application around another one."""

    def __init__(
        self,
        app: Any,
        calls: Mapping[str, Callable[[bytes], Awaitable[Response]]],  # by path: what answers the body of a POST
        tokens: Tokens,
        metrics: Metrics,
        *,
        largest_body: int,
        seconds: float,
        rate: float | None,
        log_all: bool,
    ):
        self.app, self._calls, self._tokens, self._metrics = app, calls, tokens, metrics
        self._largest, self._seconds, self._log_all = largest_body, seconds, log_all
        self._rate = None if rate is None else RateLimit(rate, max(1, 2 * rate))
        self._guesses = RateLimit(_GUESSES, 10 * _GUESSES)

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def noted(message):
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        path = scope["path"]
        try:
            headers = dict(scope["headers"])
            if not self._tokens:
                check_host(headers.get(b"host"))
            self._check_client(scope, headers.get(b"authorization"))
            body = b"" if scope["method"] in ("GET", "HEAD") else await self._body(headers, receive)
            if scope["method"] == "POST" and path in self._calls:
                await (await self._calls[path](body))(scope, receive, noted)
            else:
                await self.app(scope, _replayed(body), noted)
        except Exception as raised:
            error = refused(raised)
            scope["error"] = str(error)
            if error.status == 500:
                _log.exception("a request failed")
            if status == 0:
                await JSONResponse({"error": str(error)}, error.status, EXTRA_HEADERS.get(error.status))(
                    scope, receive, noted
                )
        seconds = time.perf_counter() - began
        self._metrics.asked(path, status, seconds)
        if self._log_all or status >= 400:
            fields = {"method": scope["method"], "path": path[:200], "status": status, "ms": round(seconds * 1e3, 3)}
            if "error" in scope:
                fields["error"] = scope["error"]
            _log.info("request", extra={"fields": fields})

    def _check_client(self, scope, authorization: bytes | None):
        address = (scope.get("client") or ("",))[0]
        try:
            token = self._tokens.check(role_of(scope["method"], scope["path"]), authorization)
        except Refused as refusal:
            if refusal.status == 401:
                self._guesses.check(address, "too many wrong tokens; ask again later")
            raise
        if self._rate is not None and scope["path"] not in PUBLIC:
            self._rate.check((address, token), "this client asks too often; ask again later")

    async def _body(self, headers, receive) -> bytes:
        """The whole body, if it is JSON of a fair size that comes in time."""
        if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
            raise Refused(415, "give the header Content-Type: application/json")  # no form of a web page can
        said = headers.get(b"content-length", b"0")
        if not said.isdigit() or int(said) > self._largest:
            raise Refused(413, f"a body may have {self._largest} bytes; give the campaigns in parts")
        body = bytearray()
        try:
            async with asyncio.timeout(self._seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refused(400, "the client went away")
                    body += message.get("body", b"")
                    if len(body) > self._largest:
                        raise Refused(413, f"a body may have {self._largest} bytes; give the campaigns in parts")
                    if not message.get("more_body"):
                        return bytes(body)
        except TimeoutError:
            raise Refused(408, f"the body did not come within {self._seconds:g} seconds") from None


def _replayed(body: bytes):
    sent = False

    async def receive():
        nonlocal sent
        if sent:
            await asyncio.Event().wait()  # for ever: nobody asks for more than the body
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive
