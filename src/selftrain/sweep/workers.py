"""Local processes that compute points: the one place that knows how work leaves this process.

What `complete` needs of a backend is an `Executor` of `concurrent.futures`: `submit` and
`shutdown`. Anything that offers these can take the place of `local_processes`.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import Executor

import joblib

ONE_THREAD = {
    f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS", "NUMBA", "BLIS")
}


def local_processes(workers: int) -> Executor:
    """Processes with one thread of linear algebra each; -1: as many as there are cores."""
    from joblib.externals.loky import ProcessPoolExecutor

    executor: Executor = ProcessPoolExecutor(
        joblib.effective_n_jobs(workers),
        initializer=_begin,
        initargs=(os.getpid(),),
        env=ONE_THREAD,
    )
    return executor


def stop_now(executor: Executor) -> None:
    """End the processes without waiting for what they compute.

    The thread that hands work to them may stumble over work that is no longer there; that is not worth a word.
    """
    told, threading.excepthook = threading.excepthook, lambda _: None
    try:
        executor.shutdown(wait=True, kill_workers=True)  # type: ignore[call-arg]
    finally:
        threading.excepthook = told


def _begin(parent: int) -> None:
    """A worker leaves ctrl-C to its parent, and does not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
