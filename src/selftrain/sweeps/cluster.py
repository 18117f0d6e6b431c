"""A Dask cluster as an executor: an existing scheduler, reached by its address.

Points run in processes that the workers start (`worker`): one that ends its process does not take a
worker with it, nor what else is assigned to that worker. Before work starts every worker says which
versions it has: another selftrain is rejected, since its values would be stored under the wrong
key; other releases of libraries are a warning, since the last digits may differ.
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

from ..errors import InvalidInput, SelfTrainError, Unreachable
from .run import Here
from .worker import Batch, Result, compute, in_words

PATIENCE = 4.0
"""Seconds until a scheduler that does not answer counts as unreachable."""

LOOK, ALONE = 2.0, 60.0
"""Seconds between two looks at the workers, and until a scheduler without any is given up."""

LIBRARIES = ("selftrain", "numpy", "scipy", "numba")


class Cluster(Here):
    """The workers of a scheduler: its address, or a `distributed.Client` that is connected."""

    def __init__(self, scheduler: Any) -> None:
        self._own = isinstance(scheduler, str)
        self._client = _connected(scheduler) if self._own else scheduler
        if not hasattr(self._client, "get_executor"):
            accepted = "must be the address of a Dask scheduler, or a distributed.Client"
            raise InvalidInput("scheduler", scheduler, accepted)
        from distributed import KilledWorker

        self.lost = (KilledWorker, CancelledError)  # which says nothing about the batch itself
        self._name = f"scheduler {self._client.scheduler.address}"
        self._looked = self._seen = time.monotonic()
        try:
            with self._answering():
                try:
                    self._client.wait_for_workers(1, timeout=PATIENCE)
                except TimeoutError:
                    raise Unreachable(f"{self._name}: it has no workers") from None
                self.slots = sum(self._client.nthreads().values())
                # a worker that is lost while it is asked does not answer; others do the work
                check_versions(versions(), self._client.run(versions, on_error="ignore"))
                self._executor = self._client.get_executor(pure=False)
        except BaseException:
            self.close(now=True)
            raise

    def submit(self, batch: Batch) -> Future[list[Result]]:
        """Begin a batch; a worker that is lost is replaced by another without a word."""
        self.check()
        future: Future[list[Result]] = self._executor.submit(compute, batch)
        return future

    def check(self) -> None:
        """Raise if the cluster is gone: its scheduler, or all workers for a while."""
        now = time.monotonic()
        with self._answering():
            if self._client.status not in ("running", "connecting"):
                raise ConnectionError
            if now - self._looked < LOOK:
                return
            self._looked = now
            if self._client.nthreads():
                self._seen = now
            elif now - self._seen > ALONE:
                raise Unreachable(f"{self._name}: its workers are gone")

    def close(self, now: bool = False) -> None:
        """Leave the cluster as it was found."""
        if hasattr(self, "_executor") and self._client.status == "running":
            self._executor.shutdown(wait=not now)
        if self._own:
            self._client.close()

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Make a lost connection an error of its own."""
        try:
            yield
        except TimeoutError:
            raise
        except OSError:
            raise Unreachable(
                f"{self._name}: it does not answer any more; with a store, the same call resumes"
            ) from None


def versions() -> dict[str, str]:
    """Return what numbers depend on in a process; workers are asked for it, too."""
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
            difference = f"worker {address} has {library} {other}, this process {own}"
            if other != own and library == "selftrain":
                raise SelfTrainError(f"{difference}: the same version is needed everywhere")
            if other != own:
                message = f"{difference}: the last digits may differ"
                warnings.warn(message, UserWarning, stacklevel=2)


def _connected(address: str) -> Any:
    """Return a client of the scheduler at an address. Who answers there is asked first: a client of
    an address where nobody does would not go away.
    """
    try:
        from distributed import Client
        from distributed.core import rpc
    except ImportError:
        accepted = 'it needs Dask: pip install ".[dask]" in a clone'
        raise InvalidInput("scheduler", address, accepted) from None

    async def who() -> Any:
        answering: Any = rpc
        async with answering(address, timeout=PATIENCE) as other:
            return await asyncio.wait_for(other.identity(), PATIENCE)

    connect: Any = Client
    loop = asyncio.new_event_loop()
    try:
        found = loop.run_until_complete(who())
        if "workers" not in found:
            kind = found.get("type", "something")
            raise Unreachable(f"scheduler {address}: a Dask {kind} answers there, and no scheduler")
        return connect(address, timeout=PATIENCE, set_as_default=False)
    except Unreachable:
        raise
    except Exception as error:  # another kind of server may answer anything
        late = isinstance(error, TimeoutError)
        reason = f"no answer within {PATIENCE:g} seconds" if late else in_words(error)[:160]
        raise Unreachable(f"scheduler {address}: not reachable ({reason})") from None
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
