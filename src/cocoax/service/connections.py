"""Connections with deadlines: uvicorn waits for ever for clients that send or read slowly."""

import json
import re
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_SECONDS = 10.0  # for the headers; for what is left of a body that nobody wants; and for some progress in reading
_PROGRESS = 1 << 14  # bytes of an answer that a client must read meanwhile
_BESIDE = 1 << 16  # bytes that a request may have beside its body, where they come in several pieces
_MOST = 1024  # connections
# Clients may offer another protocol (Java's own does, HTTP/2), and a server may stay with this one; but the parser
# would take the body for the other protocol. In a JSON body no line begins like this.
_UPGRADE = re.compile(rb"\r\nUpgrade:", re.IGNORECASE)


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol, which refuses what is too much or too slow."""

    _reading: Any = None  # the timers
    _writing: Any = None
    _in_message = _in_head = False  # of a request, which is not whole yet
    _is_new = False  # whether it began in the last piece
    _beside = _of_body = 0  # bytes: of the request since then, and of its body in the last piece

    def connection_made(self, transport):
        transport.set_write_buffer_limits(high=0)  # so that `pause_writing` is called whenever something waits
        super().connection_made(transport)
        self._expect()
        if len(self.connections) > _MOST:
            self._refuse(503, "Service Unavailable", f"there are {_MOST} connections already; try again later")

    def data_received(self, data):
        self._is_new, self._of_body = False, 0
        if self._in_head or not self._in_message:
            data = _UPGRADE.sub(b"\r\nIgnored:", data)
        super().data_received(data)
        if not self._in_message and not self._is_answering():  # line ends before a request
            self._expect()
        if self._in_message and not self._is_new:
            self._beside += len(data) - self._of_body
            if self._beside > _BESIDE and not self.transport.is_closing():
                self._refuse(431, "Request Header Fields Too Large", f"headers may have {_BESIDE} bytes; send less")

    def on_message_begin(self):
        super().on_message_begin()
        self._in_message = self._in_head = self._is_new = True
        self._beside = 0
        self._expect()

    def on_headers_complete(self):
        self._stop_expecting()
        super().on_headers_complete()
        self._in_head = False

    def on_body(self, body):
        self._of_body += len(body)
        super().on_body(body)

    def on_message_complete(self):
        super().on_message_complete()
        self._in_message = False
        self._stop_expecting()

    def on_response_complete(self):
        super().on_response_complete()
        if self._in_message:  # it was refused before its body came
            self._expect()

    def pause_writing(self):
        super().pause_writing()
        self._watch(None)

    def resume_writing(self):
        super().resume_writing()
        self._stop_watching()

    def connection_lost(self, exc):
        self._stop_expecting()
        self._stop_watching()
        super().connection_lost(exc)

    def send_400_response(self, msg):
        self._refuse(400, "Bad Request", "this is not HTTP; see GET /openapi.json for what there is")

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _refuse(self, status: int, name: str, sentence: str):
        """End the connection, after the answers to the requests before this one."""
        if self.pipeline or (self._is_answering() and (self._in_head or not self._in_message)):
            self.cycle.keep_alive = False
            self.flow.pause_reading()
            return
        if self._in_message and not self._in_head and not self._is_answering():  # it was answered before its end
            self.transport.abort()
            return
        body = json.dumps({"error": sentence}).encode()
        head = f"HTTP/1.1 {status} {name}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(head.encode() + b"connection: close\r\n\r\n" + body)
        self.transport.close()

    def _expect(self):
        if self._reading is None:
            self._reading = self.loop.call_later(_SECONDS, self.transport.abort)

    def _stop_expecting(self):
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _watch(self, before: int | None):
        """End the connection if its client does not read."""
        waiting = self.transport.get_write_buffer_size()
        if before is not None and before - waiting < min(_PROGRESS, before):
            self.transport.abort()
        else:
            self._writing = self.loop.call_later(_SECONDS, self._watch, waiting)

    def _stop_watching(self):
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
