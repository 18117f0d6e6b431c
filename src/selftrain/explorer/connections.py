"""Many connections at once, none of them for long: requests that never end lock nobody out."""

from __future__ import annotations

import time
from typing import Any

from waitress.channel import HTTPChannel

__all__ = ["LIMITS", "TimedChannel"]

REQUEST_SECONDS = 30.0
"""Longest a request may take to arrive, however steadily it trickles in."""

LIMITS: dict[str, Any] = {
    "connection_limit": 900,
    "channel_timeout": 15,
    "cleanup_interval": 5,
    "asyncore_use_poll": True,
}
"""Of waitress, whose hundred connections would be used up by as many halves of requests. 900 stay
below the 1024 open files that systems allow a process; poll has no limit of its own; silent
connections are closed after 15 to 20 seconds.
"""


class TimedChannel(HTTPChannel):  # type: ignore[misc]
    """A connection whose requests have to arrive in time."""

    begun = 0.0

    def received(self, data: bytes) -> Any:
        """Take what arrives of a request, unless its time is over."""
        now = time.monotonic()
        if self.request is None:
            self.begun = now
        elif now - self.begun > REQUEST_SECONDS:
            self.will_close = True
            return False
        return super().received(data)
