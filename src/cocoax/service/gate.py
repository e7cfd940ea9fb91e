"""What every request passes first: tokens, a limit on its size, and one sentence for every error."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.responses import JSONResponse, Response

from .access import Tokens, check_host, role_of
from .errors import EXTRA_HEADERS, Refused, refused
from .metrics import Metrics

_log = logging.getLogger("cocoax.service")


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
        log_all: bool,
    ):
        self.app, self._calls, self._tokens, self._metrics = app, calls, tokens, metrics
        self._largest, self._log_all = largest_body, log_all

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
            self._tokens.check(role_of(scope["method"], path), headers.get(b"authorization"))
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

    async def _body(self, headers, receive) -> bytes:
        """The whole body, if it is JSON of a fair size."""
        if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
            raise Refused(415, "give the header Content-Type: application/json")  # no form of a web page can
        said = headers.get(b"content-length", b"0")
        if not said.isdigit() or int(said) > self._largest:
            raise Refused(413, f"a body may have {self._largest} bytes; give the campaigns in parts")
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refused(400, "the client went away")
            body += message.get("body", b"")
            if len(body) > self._largest:
                raise Refused(413, f"a body may have {self._largest} bytes; give the campaigns in parts")
            if not message.get("more_body"):
                return bytes(body)


def _replayed(body: bytes):
    sent = False

    async def receive():
        nonlocal sent
        if sent:
            await asyncio.Event().wait()  # for ever: nobody asks for more than the body
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive
