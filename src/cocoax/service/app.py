"""The addresses of the service."""

import contextlib
import json
import math
import threading
from functools import partial
from importlib import resources
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException

from .. import __version__
from ..errors import CocoaxError
from ..sessions.fleet import Fleet
from .access import Tokens
from .batching import Batcher
from .errors import EXTRA_HEADERS, Refused, refused, wrong_field
from .forms import FORMS, parsed
from .gate import Gate
from .metrics import Metrics
from .sessions import SessionBatcher, Sessions

_LOOKS_BACK = 2  # requests at a time that read the whole file


def service(
    fleet: Fleet | Sessions,
    tokens: Tokens | None = None,
    *,
    largest_body: int = 1 << 20,
    longest_queue: int = 4096,
    most_campaigns: int = 250_000,
    log_all: bool = False,
) -> Gate:
    """The ASGI application that serves a fleet, or sessions, and closes them when it stops."""
    metrics = Metrics(fleet, lambda: batcher.waiting)
    kind_of_batcher = SessionBatcher if isinstance(fleet, Sessions) else Batcher
    batcher = kind_of_batcher(fleet, longest=longest_queue, most_campaigns=most_campaigns, served=metrics.served)

    @contextlib.asynccontextmanager
    async def lifespan(_):
        batcher.start()
        yield
        batcher.stop()
        fleet.close()

    app = FastAPI(
        title="cocoax", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None, redirect_slashes=False
    )
    app.state.batcher = batcher
    for kind in (Refused, CocoaxError, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, _refusal)
    _describe_calls(app)
    _add_views(app, fleet, batcher, metrics)

    async def call(kind: str, body: bytes) -> Response:
        return _json(await batcher.answer(parsed(kind, body, fleet)))

    calls = {f"/{kind}": partial(call, kind) for kind in FORMS}
    return Gate(app, calls, tokens or Tokens(), metrics, largest_body=largest_body, log_all=log_all)


def _refusal(request: Request, error: Exception) -> Response:
    """One sentence, whatever was raised."""
    if isinstance(error, HTTPException):
        error = Refused(error.status_code, f"{error.detail}; GET /openapi.json lists what there is")
    if isinstance(error, RequestValidationError):
        error = wrong_field(error.errors()[0])
    said = refused(error)
    request.scope["error"] = str(said)
    return Response(
        json.dumps({"error": str(said)}), said.status, EXTRA_HEADERS.get(said.status), media_type="application/json"
    )


def _describe_calls(app: FastAPI):
    """For /openapi.json. The gate answers these calls itself: through FastAPI a request takes twice the time."""
    for kind, form in FORMS.items():

        def described(body):
            return body

        described.__annotations__ = {"body": form}
        app.add_api_route(f"/{kind}", described, methods=["POST"], name=kind, summary=form.__doc__, response_model=None)


def _add_views(app: FastAPI, fleet: Fleet | Sessions, batcher: Batcher, metrics: Metrics):
    looking_back = threading.BoundedSemaphore(_LOOKS_BACK)

    @app.get("/health")
    async def health() -> Response:
        """Whether the process answers."""
        return _json({"status": "ok"})

    @app.get("/ready")
    async def ready() -> Response:
        """Whether calls are served."""
        if not batcher.is_alive:
            raise Refused(503, "the service is stopping; ask again later")
        if batcher.failure is not None:
            raise batcher.failure
        return _json({"status": "ok", "waiting": batcher.waiting})

    @app.get("/metrics")
    def prometheus(campaigns: str | None = None) -> Response:
        """Figures for Prometheus; also of each of the campaigns whose names contain a text, of 1,000 at most."""
        return Response(metrics.text(campaigns), media_type="text/plain; version=0.0.4")

    @app.get("/summary")
    def summary() -> Response:
        """Totals of all campaigns."""
        return _json(fleet.summary())

    @app.get("/summary/{name:path}")
    def summary_of(name: str) -> Response:
        """Totals and multipliers of one campaign."""
        return _json(fleet.summary(_known(fleet, name)))

    @app.get("/campaigns")
    def campaigns(search: str = "", limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> Response:
        """Totals of the campaigns whose names contain a text."""
        names = [name for name in fleet.names if search.lower() in name.lower()]
        rows = []
        for name in names[:limit]:
            with contextlib.suppress(ValueError):  # it has just ended
                rows.append(fleet.summary(name))
        return _json({"found": len(names), "campaigns": rows})

    @app.get("/history/{name:path}")
    def history(name: str, last: Annotated[int, Query(ge=1, le=100_000)] = 1000) -> Response:
        """The last rounds of one campaign, a list for each column. Reads the whole file."""
        if not looking_back.acquire(blocking=False):
            raise Refused(429, "others read histories already; ask again later")
        try:
            rows = fleet.history(_known(fleet, name))[-last:]
        finally:
            looking_back.release()
        return _json({column: rows[column].tolist() for column in rows.dtype.names or ()})

    @app.get("/certificate/{name:path}")
    def certificate(name: str, lmos: Annotated[int, Query(ge=1, le=100)] = 20) -> Response:
        """A proven bound on the regret of one campaign so far, if it is certified."""
        bound = fleet.certificate(_known(fleet, name), lmos=lmos)
        figures = {"regret": bound.regret, "mean": bound.mean, "infeasible": bound.infeasible, "rounds": bound.rounds}
        multiplier = dict(zip(fleet.summary(name)["violation"], bound.multiplier.tolist()))
        return _json(
            {"campaign": name, **{key: value.item() for key, value in figures.items()}, "multiplier": multiplier}
        )

    @app.get("/", include_in_schema=False)
    async def page() -> HTMLResponse:
        inline = "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
        policy = f"default-src 'none'; {inline}; connect-src 'self'"
        return HTMLResponse(_page(), headers={"content-security-policy": policy, "x-frame-options": "DENY"})


def _page() -> str:
    return resources.files("cocoax.service").joinpath("page.html").read_text("utf-8")


def _known(fleet: Fleet | Sessions, name: str) -> str:
    if name not in fleet:
        raise Refused(404, f"there is no campaign {name[:200]!r}; it has not begun, or has ended")
    return name


def _json(content: Any) -> Response:
    try:
        text = json.dumps(content, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(content))
    return Response(text, media_type="application/json")


def _finite(content):
    """With null for what JSON cannot say."""
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
