"""An executor of batches on an existing Dask cluster.

Workers compute points in child processes, so that a point that kills its process does not kill the
worker. Workers with another version of selftrain are rejected, because their values
would be stored under the wrong key; other versions of libraries cause a warning, because the last
digits may differ.
"""

from __future__ import annotations

import asyncio
import platform
import time
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

from ..errors import InvalidInput, SelfTrainError, Unreachable
from .executors import Batch, Result, SequentialExecutor, compute_in_child
from .packing import in_words

ANSWER_SECONDS = 4.0
"""Time after which a scheduler that does not answer counts as unreachable."""

CHECK_SECONDS, NO_WORKER_SECONDS = 2.0, 60.0
"""Time between two checks of the workers; time without any worker after which work is given up."""

LIBRARIES = ("selftrain", "numpy", "scipy", "numba")


class DaskExecutor(SequentialExecutor):
    """An executor of batches on the workers of a Dask scheduler.

    Arguments:
        scheduler: its address, or a connected `distributed.Client`.
    """

    def __init__(self, scheduler: Any) -> None:
        self._own = isinstance(scheduler, str)
        self._client = _connected(scheduler) if self._own else scheduler
        if not hasattr(self._client, "get_executor"):
            accepted = "must be the address of a Dask scheduler, or a distributed.Client"
            raise InvalidInput("scheduler", scheduler, accepted)
        from distributed import KilledWorker

        self.lost = (KilledWorker, CancelledError)
        self._name = f"scheduler {self._client.scheduler.address}"
        self._executor = self._client.get_executor(pure=False)
        self._last_check = self._last_worker = time.monotonic()
        try:
            with self._connection_errors():
                self._client.wait_for_workers(1, timeout=ANSWER_SECONDS)
                self.slots = sum(self._client.nthreads().values())
                # a worker that is lost meanwhile does not answer: compare those that do
                check_versions(versions(), self._client.run(versions, on_error="ignore"))
        except BaseException:
            self.close(now=True)
            raise

    def submit(self, batch: Batch) -> Future[list[Result]]:
        """Start a batch; Dask moves it to another worker if its worker is lost."""
        self.check()
        future: Future[list[Result]] = self._executor.submit(compute_in_child, batch)
        return future

    def check(self) -> None:
        """Raise if the scheduler is gone, or has had no workers for a while."""
        now = time.monotonic()
        with self._connection_errors():
            if self._client.status not in ("running", "connecting"):
                raise ConnectionError
            if now - self._last_check < CHECK_SECONDS:
                return
            self._last_check = now
            if self._client.nthreads():
                self._last_worker = now
            elif now - self._last_worker > NO_WORKER_SECONDS:
                raise Unreachable(f"{self._name}: its workers are gone")

    def close(self, now: bool) -> None:
        """Leave the cluster running; close the connection if it was made here."""
        if self._client.status == "running":
            self._executor.shutdown(wait=not now)
        if self._own:
            self._client.close()

    @contextmanager
    def _connection_errors(self) -> Iterator[None]:
        """Turn a lost connection, or the lack of workers, into `Unreachable`."""
        try:
            yield
        except TimeoutError:
            raise Unreachable(f"{self._name}: it has no workers that answer") from None
        except OSError:
            raise Unreachable(
                f"{self._name}: it does not answer any more; with a store, the same call resumes"
            ) from None


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that results depend on."""
    return {"python": platform.python_version()} | {name: version(name) for name in LIBRARIES}


def check_versions(here: Mapping[str, str], there: Mapping[str, Mapping[str, str]]) -> None:
    """Compare the versions of this process (`here`) with those of the workers, by address.

    Another version of selftrain raises, one of another library warns.

    >>> check_versions({"selftrain": "1", "numpy": "2"}, {"a": {"selftrain": "1", "numpy": "2"}})
    """
    for address, found in there.items():
        for library in (name for name in here if found[name] != here[name]):
            difference = (
                f"worker {address} has {library} {found[library]}, this process {here[library]}"
            )
            if library == "selftrain":
                raise SelfTrainError(f"{difference}: the versions must be the same")
            warnings.warn(f"{difference}: the last digits may differ", UserWarning, stacklevel=2)


def _connected(address: str) -> Any:
    """Return a client of the scheduler at an address.

    First ask the server what it is: a client would retry an address without a scheduler for ever,
    in the background.
    """
    try:
        from distributed import Client
        from distributed.core import rpc
    except ImportError:
        advice = 'it needs Dask: pip install ".[dask]" in a clone'
        raise InvalidInput("scheduler", address, advice) from None

    async def identity() -> Any:
        connect: Any = rpc
        async with connect(address, timeout=ANSWER_SECONDS) as server:
            return await asyncio.wait_for(server.identity(), ANSWER_SECONDS)

    client: Any = Client
    try:
        with ThreadPoolExecutor(1) as thread:  # in a notebook, this thread runs a loop already
            found = thread.submit(asyncio.run, identity()).result()
        if "workers" in found:
            return client(address, timeout=ANSWER_SECONDS, set_as_default=False)
        reason = f"a Dask {found.get('type', 'server')} answers there"
    except TimeoutError:
        reason = f"no answer within {ANSWER_SECONDS:g} seconds"
    except Exception as error:  # another kind of server may answer anything
        reason = in_words(error)[:160]
    raise Unreachable(f"scheduler {address}: no scheduler is reachable there ({reason})")
