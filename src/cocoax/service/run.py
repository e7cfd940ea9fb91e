"""`cocoax serve FILE`."""

import json
import logging
import re
import socket
import time
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ..core.scripts import names_in
from ..errors import SessionError
from ..sessions.fleet import Fleet
from .access import Tokens, is_loopback
from .app import service
from .sessions import Sessions

_IDLE, _STOPPING = 30, 20  # seconds: kept connections, answers that wait when it stops
_UPGRADE = re.compile(rb"\r\nUpgrade:", re.IGNORECASE)  # no line of a JSON body begins like this


class _Protocol(HttpToolsProtocol):
    """Ignores offers of other protocols (Java's own client offers HTTP/2): the parser would take the body for them."""

    def data_received(self, data):
        super().data_received(_UPGRADE.sub(b"\r\nIgnored:", data))


def serve(file: Path, host: str, port: int, tokens: Tokens, **limits: Any):
    """Serve the fleet or the sessions of a file until SIGTERM or Ctrl-C."""
    if not is_loopback(host) and not tokens:
        raise SessionError(f"tokens must guard a service on {host}; give --tokens FILE, or leave out --host")
    fleet, example = load(file)
    with fleet:
        fleet.compile(example)
        with _listening(host, port) as listener:
            _log_as_json()
            app = service(fleet, tokens, **limits)
            host, port = listener.getsockname()[:2]
            address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
            print(f"cocoax: {len(fleet)} campaign{'s' * (len(fleet) != 1)} at {address}", flush=True)
            uvicorn.Server(_config(app)).run(sockets=[listener])


def load(file: Path) -> tuple[Fleet | Sessions, Any]:
    """`fleet`, `session` or `sessions`, and `example` if there is one, as a Python file defines them."""
    if not file.is_file():
        raise SessionError(f"there is no file {file}; give a Python file that defines fleet = cx.Fleet(...)")
    names = names_in(file, SessionError)
    if isinstance(names.get("fleet"), Fleet):
        return names["fleet"], names.get("example")
    sessions = names.get("sessions", {"session": names["session"]} if "session" in names else None)
    if not isinstance(sessions, dict) or not sessions:
        raise SessionError(f"{file} does not define fleet = cx.Fleet(...), session = cx.Session(...) or sessions")
    return Sessions(sessions), names.get("example")


def _listening(host, port) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=512)
    except (OSError, OverflowError) as error:
        raise SessionError(f"cannot listen on {host}, port {port}: {error}; give another --host or --port") from None


def _config(app) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=_STOPPING,
    )


class _Json(logging.Formatter):
    """One JSON object a line."""

    def format(self, record):
        line: dict[str, Any] = {
            "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def _log_as_json():
    handler = logging.StreamHandler()
    handler.setFormatter(_Json())
    for name in ("cocoax.service", "uvicorn", "py.warnings"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.WARNING if name == "uvicorn" else logging.INFO)
    logging.captureWarnings(True)
