"""Work on several cores: processes for points of a sweep, threads for kernels that release the
lock.

What a sweep needs of a backend is an `Executor` of `concurrent.futures`: `submit` and `shutdown`.
Anything that offers these can take the place of `local_processes`.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
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
    """Validate `workers`: 0 for this process alone, -1 for all cores."""
    accepted = "a whole number from 0 (this process alone) to 1024, or -1 for all cores"
    return whole("workers", workers, lambda n: -1 <= n <= 1024, accepted)


def cores(workers: int) -> int:
    """How many workers are meant: -1 stands for all cores, 0 for this process alone.

    >>> cores(3), cores(0)
    (3, 1)
    """
    return int(joblib.effective_n_jobs(workers)) if workers else 1


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra on one thread: on matrices of some hundred rows several threads take longer to
    meet than to compute, many times longer where other work wants the cores too.
    """
    with threadpool_limits(1, "blas"):
        yield


def in_threads(
    work: Callable[[Item], None], items: Sequence[Item], workers: int, stop: threading.Event
) -> Generator[Item, None, None]:
    """Do the work of each item in threads, or here if `workers` is 1; yields each item when it is
    finished.

    Closing the iterator, and an error or interrupt while it waits, sets `stop`: work that looks at
    it ends early.
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


def local_processes(workers: int) -> Executor:
    """Processes with one thread of linear algebra each; -1: as many as there are cores."""
    from joblib.externals.loky import ProcessPoolExecutor

    executor: Executor = ProcessPoolExecutor(
        cores(workers),
        initializer=follow_parent,
        initargs=(os.getpid(),),
        env=ONE_THREAD,
    )
    return executor


def stop_now(executor: Executor) -> None:
    """End the processes without waiting for what they compute.

    The thread that hands work to them may fail on work that is no longer there: its message is
    dropped.
    """
    hook, threading.excepthook = threading.excepthook, lambda _: None
    try:
        executor.shutdown(wait=True, kill_workers=True)  # type: ignore[call-arg]
    finally:
        threading.excepthook = hook


def follow_parent(parent: int) -> None:
    """Leave ctrl-C to the parent, and do not outlive it: for processes that compute for another."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
