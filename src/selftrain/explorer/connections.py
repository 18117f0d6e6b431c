"""Limits of connections: requests that arrive slowly or never end must not block other visitors."""

from __future__ import annotations

import time
from typing import Any

from waitress.channel import HTTPChannel

__all__ = ["LIMITS", "TimedChannel"]

REQUEST_SECONDS = 30.0
"""Longest time that a request may take to arrive."""

LIMITS: dict[str, Any] = {
    "connection_limit": 900,
    "channel_timeout": 15,
    "cleanup_interval": 5,
    "asyncore_use_poll": True,
}
"""Options of waitress. Its default of 100 connections could be used up by 100 incomplete requests;
900 is below the 1024 files that a process may usually open, and `poll` has no limit of its own.
Silent connections are closed after 15 to 20 seconds.
"""


class TimedChannel(HTTPChannel):  # type: ignore[misc]
    """A connection whose requests must arrive within `REQUEST_SECONDS`."""

    begun = 0.0

    def received(self, data: bytes) -> Any:
        """Receive a part of a request; close the connection if the request took too long."""
        now = time.monotonic()
        if self.request is None:
            self.begun = now
        elif now - self.begun > REQUEST_SECONDS:
            self.will_close = True
            return False
        return super().received(data)
