"""Connections with deadlines: uvicorn waits for ever for clients that send or read slowly."""

import json
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_SECONDS = 10.0  # for the headers; for what is left of a body that nobody wants; and for some progress in reading
_PROGRESS = 1 << 14  # bytes of an answer that a client must read meanwhile
_MOST = 1024  # connections


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol, which refuses what is too much or too slow."""

    _reading: Any = None  # the timers
    _writing: Any = None
    _in_message = False

    def connection_made(self, transport):
        transport.set_write_buffer_limits(high=0)  # so that `pause_writing` is called whenever something waits
        super().connection_made(transport)
        self._expect()
        if len(self.connections) > _MOST:
            self._refuse(503, "Service Unavailable", f"there are {_MOST} connections already; try again later")

    def data_received(self, data):
        super().data_received(data)
        if not self._in_message and (self.cycle is None or self.cycle.response_complete):  # line ends before a request
            self._expect()

    def on_message_begin(self):
        super().on_message_begin()
        self._in_message = True
        self._expect()

    def on_headers_complete(self):
        self._stop_expecting()
        super().on_headers_complete()

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

    def _refuse(self, status: int, name: str, sentence: str):
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
