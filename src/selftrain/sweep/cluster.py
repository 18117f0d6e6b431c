"""A Dask cluster as a backend: an existing scheduler, reached by its address.

Before work starts every worker says which versions it has: other code of this package is refused,
since its values would be stored under the wrong key; other releases of libraries are reported,
since the last digits may differ.
"""

from __future__ import annotations

import asyncio
import platform
import time
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ..errors import InvalidInput, SelfTrainError
from .backends import Answer, LostProcess
from .work import compute

PATIENCE = 4.0
"""Seconds until a scheduler that does not answer counts as unreachable."""

LOOK, ALONE = 2.0, 60.0
"""Seconds between two looks at the workers, and until a scheduler that lost all of them is given
up.
"""

LIBRARIES = ("selftrain", "numpy", "scipy", "numba")


class Unreachable(SelfTrainError):
    """No scheduler answers at the address, or it has no workers."""


class Cluster:
    """The workers of a scheduler; its address, or a `distributed.Client` that is connected
    already.

    Points run in processes that the workers start (`isolated`): one that ends its process does not
    take a worker with it, nor what else is assigned to that worker.
    """

    isolates = True

    def __init__(self, scheduler: Any) -> None:
        self._own = isinstance(scheduler, str)
        self._client = _connect(scheduler) if self._own else _checked(scheduler)
        self._address = str(self._client.scheduler.address)
        self._looked = self._seen = time.monotonic()
        try:
            with self._answering():
                self.slots = self._threads()
                # a worker that is lost while it is asked does not answer; others do the work
                check_versions(versions(), self._client.run(versions, on_error="ignore"))
                self._executor = self._client.get_executor(pure=False)
        except BaseException:
            self.close(now=True)
            raise

    def submit(self, work: bytes) -> Future[Answer]:
        """Begin a batch; a worker that is lost is replaced by another without a word."""
        self.check()
        future: Future[Answer] = self._executor.submit(compute, work)
        return future

    def loss(self, error: BaseException) -> LostProcess | None:
        """Dask gives up a batch that was assigned to several workers when they died, which says
        nothing about what ended them: it is sent again, alone.
        """
        from distributed import KilledWorker

        if isinstance(error, KilledWorker):
            return LostProcess.OFTEN
        return LostProcess.ALONE if isinstance(error, CancelledError) else None

    def check(self) -> None:
        """Refuse to wait for a cluster that is gone: its scheduler, or all workers for a while."""
        if self._client.status not in ("running", "connecting"):
            raise Unreachable(self._silent)
        now = time.monotonic()
        if now - self._looked < LOOK:
            return
        self._looked = now
        with self._answering():
            present = bool(self._client.nthreads())
        if present:
            self._seen = now
        elif now - self._seen > ALONE:
            raise Unreachable(f"scheduler {self._address}: its workers are gone")

    def restart(self) -> None:
        """Give up on what is computed: workers are the cluster's own."""
        self._executor.shutdown(wait=False)
        self._executor = self._client.get_executor(pure=False)

    def close(self, now: bool = False) -> None:
        """Leave the cluster as it was found."""
        if hasattr(self, "_executor") and self._client.status == "running":
            self._executor.shutdown(wait=not now)
        if self._own:
            self._client.close()

    @property
    def _silent(self) -> str:
        return (
            f"scheduler {self._address}: it does not answer any more; with a store, the same call"
            " goes on from what was finished"
        )

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """A connection that is lost meanwhile is an error of its own."""
        try:
            yield
        except OSError as error:
            if isinstance(error, TimeoutError):
                raise
            raise Unreachable(self._silent) from None

    def _threads(self) -> int:
        """Batches that its workers compute at once."""
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise Unreachable(f"scheduler {self._address}: it has no workers") from None
        return sum(self._client.nthreads().values())


def versions() -> dict[str, str]:
    """What numbers depend on in a process; workers are asked for it, too."""
    found = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            found[library] = "not installed"
    return found


def check_versions(here: Mapping[str, str], there: Mapping[str, Mapping[str, str]]) -> None:
    """Compare the versions of this process with those of each worker, by address.

    >>> check_versions({"selftrain": "1", "numpy": "2"}, {"a": {"selftrain": "1", "numpy": "2"}})
    """
    for address, found in there.items():
        for library, own in here.items():
            other = found.get(library, "unknown")
            if other == own:
                continue
            difference = f"worker {address} has {library} {other}, this process {own}"
            if library == "selftrain":
                raise SelfTrainError(f"{difference}: the same version is needed everywhere")
            warnings.warn(f"{difference}: the last digits may differ", UserWarning, stacklevel=2)


def _connect(address: str) -> Any:
    """A client of the scheduler at an address, which was seen to answer."""
    try:
        from distributed import Client
    except ImportError:
        accepted = 'it needs Dask: pip install ".[dask]" in a clone'
        raise InvalidInput("scheduler", address, accepted) from None
    _check_reachable(address)
    connect: Any = Client
    try:
        return connect(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise _unreachable(address, error) from None


def _check_reachable(address: str) -> None:
    """Ask who answers at an address; a `Client` of an address where nobody does would not go
    away.
    """
    from distributed.core import rpc

    async def who() -> Any:
        answering: Any = rpc
        async with answering(address, timeout=PATIENCE) as other:
            return await asyncio.wait_for(other.identity(), PATIENCE)

    loop = asyncio.new_event_loop()
    try:
        found = loop.run_until_complete(who())
    except Exception as error:  # another kind of server may answer anything
        raise _unreachable(address, error) from None
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
    if "workers" not in found:
        kind = found.get("type", "something")
        raise Unreachable(f"scheduler {address}: a Dask {kind} answers there, and no scheduler")


def _unreachable(address: str, error: Exception) -> Unreachable:
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:160]
    if isinstance(error, TimeoutError):
        reason = f"no answer within {PATIENCE:g} seconds"
    return Unreachable(f"scheduler {address}: not reachable ({reason})")


def _checked(client: Any) -> Any:
    if not hasattr(client, "get_executor"):
        accepted = "the address of a Dask scheduler, or a distributed.Client, is accepted"
        raise InvalidInput("scheduler", client, accepted)
    return client
