"""A Dask cluster as a backend: an existing scheduler, reached by its address.

Before work starts every worker says which versions it has: other code of this package is refused, since
its values would be stored under the wrong key; other releases of libraries are reported, since the last
digits may differ.
"""

from __future__ import annotations

import platform
import warnings
from collections.abc import Mapping
from concurrent.futures import Future
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ..errors import InvalidInput, SelfTrainError
from .backends import Answer
from .work import compute

PATIENCE = 8.0
"""Seconds until a scheduler that does not answer counts as unreachable."""

LIBRARIES = ("selftrain", "numpy", "scipy", "numba")


class Unreachable(SelfTrainError):
    """No scheduler answers at the address, or it has no workers."""


class Cluster:
    """The workers of a scheduler; its address, or a `distributed.Client` that is connected already."""

    def __init__(self, scheduler: Any) -> None:
        self._own = isinstance(scheduler, str)
        self._client = _connect(scheduler) if self._own else _checked(scheduler)
        try:
            self.slots = self._threads()
            check_versions(versions(), self._client.run(versions))
        except BaseException:
            self.close(now=True)
            raise
        self._executor = self._client.get_executor(pure=False)

    def submit(self, work: bytes) -> Future[Answer]:
        """Begin a batch; a worker that is lost is replaced by another without a word."""
        future: Future[Answer] = self._executor.submit(compute, work)
        return future

    def is_broken(self, error: BaseException) -> bool:
        """Other batches are not touched by a lost worker."""
        return False

    def restart(self) -> None:
        """Give up on what is computed: workers are the cluster's own."""
        self._executor.shutdown(wait=False)
        self._executor = self._client.get_executor(pure=False)

    def close(self, now: bool = False) -> None:
        """Leave the cluster as it was found."""
        if hasattr(self, "_executor"):
            self._executor.shutdown(wait=not now)
        if self._own:
            self._client.close()

    def _threads(self) -> int:
        """Batches that its workers compute at once."""
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            address = self._client.scheduler.address
            raise Unreachable(f"scheduler {address}: it has no workers") from None
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
            told = f"worker {address} has {library} {other}, this process {own}"
            if library == "selftrain":
                raise SelfTrainError(f"{told}: the same version is needed everywhere")
            warnings.warn(f"{told}: the last digits may differ", UserWarning, stacklevel=2)


def _connect(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        accepted = 'it needs Dask: pip install "selftrain[dask]"'
        raise InvalidInput("scheduler", address, accepted) from None
    try:
        connect: Any = Client
        return connect(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        reason = " ".join(str(error).split())[:120]
        raise Unreachable(f"scheduler {address}: not reachable ({reason})") from None


def _checked(client: Any) -> Any:
    if not hasattr(client, "get_executor"):
        accepted = "the address of a Dask scheduler, or a distributed.Client, is accepted"
        raise InvalidInput("scheduler", client, accepted)
    return client
