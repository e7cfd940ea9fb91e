"""Figures for Prometheus."""

import contextlib
import math
import time
from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from ..errors import SessionError
from .forms import FORMS

_PATHS = {*FORMS, "summary", "history", "campaigns", "certificate", "metrics", "health", "ready"}
_SECONDS = 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10
_PART = 1024  # campaigns in one call
_SHOWN = 1000  # campaigns with figures of their own
_BOUNDS = 30  # seconds between two computations of the regret bounds
_TOTALS = {
    "violation": "Sum of the constraint's values, over the rounds of all campaigns: spending minus plan",
    "hard_violation": "Sum of the positive values of the constraint, over the rounds of all campaigns",
    "mean_multiplier": "Mean multiplier of the constraint over all campaigns",
    "largest_multiplier": "Largest multiplier of the constraint of any campaign",
}
_BUDGETS = {
    "budget": "Budgets of learners.Budgeted, for the whole game",
    "planned": "What may be spent of the budgets by the end of the next round",
    "spent": "What was spent of the budgets",
    "reserved": "What decisions that wait for their rounds may spend",
}
_OF_EACH = ("violation", "multiplier", *_BUDGETS)  # of a campaign that was asked for


class Metrics:
    """Counters and histograms of one service, and gauges that ask its fleet."""

    def __init__(self, fleet: Any, waiting: Callable[[], int]):
        self._fleet, self._registry = fleet, CollectorRegistry()
        registry = self._registry
        self._requests = Histogram(
            "cocoax_request_seconds", "Time from a request to its answer", ["path"], buckets=_SECONDS, registry=registry
        )
        self._statuses = Counter("cocoax_requests", "Requests by status", ["path", "status"], registry=registry)
        self._refused = Counter("cocoax_refused", "Requests that were refused", ["status"], registry=registry)
        self._calls = Histogram(
            "cocoax_call_seconds", "Time of one call of the fleet", ["kind"], buckets=_SECONDS, registry=registry
        )
        self._campaigns = Counter("cocoax_served", "Campaigns served, by kind of call", ["kind"], registry=registry)
        registry.register(_OfFleet(fleet, waiting))

    def asked(self, path: str, status: int, seconds: float):
        """A request was answered."""
        first = path.removeprefix("/").partition("/")[0]  # a path may also be *
        name = first if first in _PATHS else "other"
        self._requests.labels(name).observe(seconds)
        self._statuses.labels(name, str(status)).inc()
        if status >= 400:
            self._refused.labels(str(status)).inc()

    def served(self, kind: str, requests: int, campaigns: int, seconds: float):
        """The fleet was called for so many requests."""
        self._calls.labels(kind).observe(seconds)
        self._campaigns.labels(kind).inc(campaigns)

    def text(self, search: str | None = None) -> bytes:
        """All figures; with those of campaigns whose names contain a text, if one is given."""
        if search is None:
            return generate_latest(self._registry)
        some = CollectorRegistry()
        some.register(_OfCampaigns(self._fleet, search.lower()))
        return generate_latest(self._registry) + generate_latest(some)


class _OfFleet(Collector):
    def __init__(self, fleet: Any, waiting: Callable[[], int]):
        self._fleet, self._waiting = fleet, waiting
        self._bound, self._since = None, -math.inf

    def _regret_bound(self) -> float | None:
        """The sum over all campaigns; None if they are not certified."""
        if time.monotonic() - self._since > _BOUNDS:
            try:
                names = self._fleet.names
                parts = [names[at : at + _PART] for at in range(0, len(names), _PART)]
                self._bound = float(sum(self._fleet.regret_bounds(part).sum() for part in parts))
            except SessionError:  # not certified, or a campaign ended meanwhile
                self._bound = None
            self._since = time.monotonic()
        return self._bound

    def describe(self):
        return []

    def collect(self):
        summary = self._fleet.summary()
        yield GaugeMetricFamily("cocoax_queue_length", "Requests that wait", value=self._waiting())
        yield GaugeMetricFamily("cocoax_campaigns", "Campaigns that have not ended", value=summary["campaigns"])
        yield GaugeMetricFamily("cocoax_rounds", "Rounds of these campaigns", value=summary["rounds"])
        yield GaugeMetricFamily("cocoax_loss", "Sum of the losses of these rounds", value=summary["loss"])
        yield GaugeMetricFamily("cocoax_alarms", "Campaigns whose budget looks infeasible", value=summary["alarms"])
        if (bound := self._regret_bound()) is not None:
            text = "Sum of proven bounds on the regret of all campaigns so far"
            yield GaugeMetricFamily("cocoax_regret_bound", text, value=bound)
        if "pending" in summary:
            yield GaugeMetricFamily("cocoax_pending", "Tickets that are not observed yet", value=summary["pending"])
        for name, text in (_TOTALS | _BUDGETS).items():
            if name in summary:
                family = GaugeMetricFamily(
                    f"cocoax_{name}", text, labels=["constraint" if name in _TOTALS else "budget"]
                )
                for part, value in _parts(summary[name]):
                    family.add_metric([part], value)
                yield family


class _OfCampaigns(Collector):
    def __init__(self, fleet: Any, search: str):
        names = [name for name in fleet.names if search in name.lower()]
        self._fleet, self._names = fleet, names[:_SHOWN]

    def describe(self):
        return []

    def collect(self):
        summaries = []
        for name in self._names:
            with contextlib.suppress(SessionError, KeyError):  # it has just ended
                summaries.append(self._fleet.summary(name))
        for name in _OF_EACH:
            kind = "budget" if name in _BUDGETS else "constraint"
            family = GaugeMetricFamily(f"cocoax_campaign_{name}", f"{name} of one campaign", labels=["campaign", kind])
            for summary in summaries:
                for part, value in _parts(summary.get(name, [])):
                    family.add_metric([summary["campaign"], part], value)
            if family.samples:
                yield family


def _parts(figures: Any) -> list[tuple[str, float]]:
    """Of each constraint by its name, of each budget by its number."""
    pairs = figures.items() if isinstance(figures, dict) else enumerate(figures)
    return [(str(part), value) for part, value in pairs]
