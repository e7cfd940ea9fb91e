"""How many requests a client may make: a bucket that fills with time."""

import time
from collections import OrderedDict
from collections.abc import Callable

from .errors import Refused

_MOST_CLIENTS = 10_000  # the oldest one is forgotten


class RateLimit:
    """`limit` requests a second for each client, and `burst` at once."""

    def __init__(self, limit: float, burst: float, clock: Callable[[], float] = time.monotonic):
        self._limit, self._burst, self._clock = limit, burst, clock
        self._clients: OrderedDict[object, tuple[float, float]] = OrderedDict()  # what is left, and when that was

    def check(self, client: object, sentence: str):
        """Count a request; raise if it is one too many."""
        now = self._clock()
        left, since = self._clients.pop(client, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._limit)
        self._clients[client] = left - 1 if left >= 1 else left, now
        if len(self._clients) > _MOST_CLIENTS:
            self._clients.popitem(last=False)
        if left < 1:
            raise Refused(429, sentence)
