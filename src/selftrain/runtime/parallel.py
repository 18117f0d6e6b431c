"""Parallel work: processes, and threads for kernels that release the interpreter lock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any, TypeVar

import joblib
from threadpoolctl import threadpool_limits

from ..fields import whole

Item = TypeVar("Item")

ONE_THREAD = {
    f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS", "NUMBA", "BLIS")
}


def whole_workers(workers: Any) -> int:
    """Validate `workers`: 0 for work in this process, -1 for all cores."""
    accepted = "must be a whole number from 0 (in this process) to 1024, or -1 (all cores)"
    return whole("workers", workers, lambda n: -1 <= n <= 1024, accepted)


def cores(workers: int) -> int:
    """Return the number of workers: -1 stands for all cores, 0 for work in this process.

    >>> cores(3), cores(0)
    (3, 1)
    """
    return int(joblib.effective_n_jobs(workers)) if workers else 1


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit linear algebra to one thread in this context.

    For matrices of a few hundred rows, synchronising several threads takes longer than the
    computation, and many times longer if the cores are busy.
    """
    with threadpool_limits(1, "blas"):
        yield


def in_threads(
    work: Callable[[Item], None], items: Sequence[Item], workers: int, stop: threading.Event
) -> Generator[Item, None, None]:
    """Apply `work` to each item in threads, or in this thread if `workers` is 1.

    Yields items as they are finished. Closing the iterator, an error or an interrupt sets `stop`,
    which `work` may check to end early.
    """
    if workers == 1:
        for item in items:
            work(item)
            yield item
        return
    with ThreadPoolExecutor(workers) as pool:
        sent = {pool.submit(work, item): item for item in items}
        try:
            for future in as_completed(sent):
                future.result()
                yield sent[future]
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
