"""Whatever is killed or damaged, a resumed sweep holds what an undisturbed one does, bit for
bit.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest

from selftrain import SelfTrainError, sweep
from selftrain.errors import StoreError
from selftrain.sweeps import Computation, Store, load
from selftrain.sweeps.executors import LOAD_ATTEMPTS, Batch, Limits, ProcessExecutor
from selftrain.sweeps.packing import pack_function

sys.path.insert(0, str(Path(__file__).parent))
from deadly_points import Unloadable, blocked, endless, greedy, slowly, suicidal

AXIS = tuple(range(120))
WORKER_KILLS = 6


def run(file: Path | None, workers: int) -> object:
    return sweep(over={"x": AXIS}, task=slowly, workers=workers, store=file, progress=False)


@pytest.fixture(scope="module")
def undisturbed() -> object:
    return run(None, 0)


def in_child(action: Callable[[], object]) -> int:
    """Start an action in a process of its own."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setpgid(0, 0)
            action()
            code = 0
        finally:
            os._exit(code)
    return child


def stored(file: Path) -> int:
    """How many points a store has."""
    if not file.exists():
        return 0
    with (
        suppress(sqlite3.Error),
        closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as base,
    ):
        return int(base.execute("select count(*) from points").fetchone()[0])
    return 0


def ended(child: int) -> int | None:
    """The exit code of a child, None while it runs."""
    done, status = os.waitpid(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if done else None


@pytest.mark.parametrize("workers", [0, 2])
def test_a_driver_killed_at_random_moments_resumes(
    tmp_path: Path, undisturbed: object, workers: int
) -> None:
    """A kill may come at any moment: before the first transaction, between two, or within one."""
    chance = random.Random(workers)
    files = [tmp_path / "0.db"]
    killed = 0
    while killed < (36 if workers == 0 else 4):
        before = stored(files[-1])
        child = in_child(lambda: run(files[-1], workers))
        limit = time.monotonic() + 60
        code = None
        while workers and code is None and stored(files[-1]) == before:
            assert time.monotonic() < limit
            time.sleep(0.01)
            code = ended(child)
        time.sleep(chance.uniform(0.0, 0.08))
        code = ended(child) if code is None else code
        if code is None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            killed += 1
        else:
            assert code == 0
            files.append(tmp_path / f"{len(files)}.db")
    for file in files:
        assert run(file, 0).identical(undisturbed)  # type: ignore[attr-defined]
        assert not list(tmp_path.glob("*.damaged"))


@pytest.mark.parametrize("finished", [False, True])
def test_a_transaction_that_a_kill_has_interrupted_is_rolled_back(
    tmp_path: Path, undisturbed: object, finished: bool
) -> None:
    """Its pages are in the file already, and those before in a journal beside it."""
    file = tmp_path / "s.db"
    if finished:
        run(file, 0)

    def interrupted() -> None:
        base = sqlite3.connect(file, isolation_level=None)
        base.execute("pragma cache_size=1")
        base.execute("begin")
        base.execute("create table filler (content blob)")
        if finished:
            base.execute("delete from points")
        for _ in range(50):
            base.execute("insert into filler values (randomblob(4000))")
        os.kill(os.getpid(), signal.SIGKILL)

    os.waitpid(in_child(interrupted), 0)
    assert (tmp_path / "s.db-journal").stat().st_size > 0
    if finished:
        assert load(file).identical(undisturbed)  # type: ignore[arg-type]
    assert run(file, 0).identical(undisturbed)  # type: ignore[attr-defined]
    assert not list(tmp_path.glob("*.damaged"))


def workers_of(driver: int) -> list[int]:
    """Processes that compute for a driver."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                state = (folder / "stat").read_text().rpartition(")")[2].split()
                line = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if int(state[1]) == driver and b"child_process import run" in line:
                found.append(int(folder.name))
    return found


def kill_workers(file: Path, most: int, chance: random.Random) -> int:
    """Run in a child whose workers are killed as points appear; how many were."""
    child = in_child(lambda: run(file, 2))
    killed, seen = 0, 0
    limit = time.monotonic() + 300
    code = None
    while killed < most and time.monotonic() < limit:
        if (code := ended(child)) is not None:
            break
        found = workers_of(child)
        if stored(file) > seen and found:
            seen = stored(file)
            time.sleep(chance.uniform(0.0, 0.05))
            with suppress(ProcessLookupError):
                os.kill(chance.choice(found), signal.SIGKILL)
                killed += 1
        time.sleep(0.005)
    if code is None:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == 0
    return killed


def test_workers_killed_at_random_moments_are_replaced(tmp_path: Path, undisturbed: object) -> None:
    """The driver goes on by itself; a killed worker costs what it had under way."""
    chance = random.Random(3)
    killed = 0
    for at in range(WORKER_KILLS):
        file = tmp_path / f"{at}.db"
        killed += kill_workers(file, WORKER_KILLS - killed, chance)
        assert load(file).identical(undisturbed)  # type: ignore[arg-type]
        if killed == WORKER_KILLS:
            return
    pytest.fail(f"only {killed} workers could be killed")


def test_processes_that_ended_while_they_were_idle_are_replaced() -> None:
    """However many: none of them says anything about the batch that finds it gone."""
    children = ProcessExecutor(1)
    packed = pack_function(Computation(slowly, None))
    batch = Batch(packed, [{"x": 1}], Limits())
    try:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(children.compute, [batch] * 4))
            idle = workers_of(os.getpid())
            assert len(idle) == 4
            for worker in idle:
                os.kill(worker, signal.SIGKILL)
            assert [one.reason for one in children.compute(batch)] == [None]
    finally:
        children.close(now=True)


def test_kills_while_a_process_loads_do_not_end_what_others_compute() -> None:
    """More kills than `LOAD_ATTEMPTS`; points of other processes show that loading works."""
    children = ProcessExecutor(1)
    batch = Batch(pack_function(Computation(slowly, None)), [{"x": 1}], Limits())
    others: set[int] = set()
    try:
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(children.compute, batch)
            for _ in range(LOAD_ATTEMPTS + 2):
                while not (loading := set(workers_of(os.getpid())) - others):
                    time.sleep(0.001)
                (worker,) = loading
                os.kill(worker, signal.SIGSTOP)
                assert [one.reason for one in children.compute(batch)] == [None]
                others |= set(workers_of(os.getpid())) - loading
                os.kill(worker, signal.SIGKILL)
                while worker in workers_of(os.getpid()):
                    time.sleep(0.001)
            assert [one.reason for one in waiting.result()] == [None]
    finally:
        children.close(now=True)


def test_a_function_that_ends_every_process_that_loads_it_ends_the_sweep() -> None:
    with pytest.raises(SelfTrainError, match="ended while it was loading"):
        sweep(over={"x": (1, 2)}, task=Unloadable(), workers=2, progress=False)


def test_a_point_that_ends_its_process_is_found_and_the_others_are_kept() -> None:
    data = sweep(over={"x": tuple(range(6))}, task=suicidal, workers=2, progress=False)
    assert data["status"].values.tolist() == [0, 0, 0, 1, 0, 0]
    assert "process was killed" in str(data["reason"].values[3])


def test_points_that_take_too_long_or_too_much_have_failed() -> None:
    data = sweep(over={"x": (0, 1, 2)}, task=endless, workers=0, time_limit=0.3)
    assert data["status"].values.tolist() == [0, 1, 0]
    assert str(data["reason"].values[1]) == "it took longer than 0.3 seconds"
    data = sweep(over={"x": (1, 2**31)}, task=greedy, workers=1, memory_limit=2**29)
    assert data["status"].values.tolist() == [0, 1]
    assert "not enough memory" in str(data["reason"].values[1])


def children() -> set[int]:
    """Processes that this one has started, but for the one that counts resources."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state = stat.read_text().rpartition(")")[2].split()
            line = (stat.parent / "cmdline").read_bytes()
            if (
                int(state[1]) == os.getpid()
                and state[0] != "Z"
                and b"child_process import run" in line
            ):
                found.add(int(stat.parent.name))
    return found


@pytest.mark.parametrize("workers", [0, None, 2])
def test_a_limit_of_time_ends_calls_that_do_not_return(workers: int | None) -> None:
    """Each would take a minute; what is started meanwhile is not left behind."""
    begin = time.monotonic()
    how = {"workers": workers, "time_limit": 1.0, "progress": False}
    data = sweep(over={"x": (0, 1, 2, 3)}, task=blocked, **how)
    assert data["status"].values.tolist() == [0, 1, 1, 0]
    assert {str(data["reason"].values[at]) for at in (1, 2)} == {"it took longer than 1 seconds"}
    assert time.monotonic() - begin < 55
    assert not children()


ORPHAN = """
import os, sys, time
from selftrain import sweep
def waits(x):
    with open(sys.argv[1], "w") as file:
        file.write(str(os.getpid()))
    time.sleep(600)
sweep(over={"x": (1,)}, task=waits, workers=0, time_limit=300, progress=False)
"""


def test_a_killed_driver_leaves_no_process_behind(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    script = ORPHAN.replace("sys.argv[1]", repr(str(mark)))
    driver = subprocess.Popen([sys.executable, "-c", script])
    limit = time.monotonic() + 120
    while not (mark.exists() and mark.read_text()) and time.monotonic() < limit:
        time.sleep(0.05)
    computing = int(mark.read_text())
    assert computing != driver.pid
    driver.kill()
    driver.wait()
    while Path(f"/proc/{computing}").exists():
        assert time.monotonic() < limit
        time.sleep(0.05)


WATCHED = """
import sys
sys.path.insert(0, {folder!r})
from deadly_points import endless, stubborn
from selftrain import sweep
sys.settrace(lambda *event: None)  # as a debugger or a measure of coverage does
for task in (endless, stubborn):
    data = sweep(over={{"x": (0, 1, 2)}}, task=task, workers=0, time_limit=0.3)
    print(data["status"].values.tolist())
"""


def test_a_limit_of_time_ends_a_point_under_a_debugger_and_one_that_catches_it() -> None:
    script = WATCHED.format(folder=str(Path(__file__).parent))
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split("\n")[:2] == ["[0, 1, 0]"] * 2, done.stderr


def test_of_two_drivers_one_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    child = in_child(lambda: run(file, 0))
    limit = time.monotonic() + 60
    while not stored(file) and time.monotonic() < limit:
        time.sleep(0.01)
    with pytest.raises(StoreError, match=rf"process {child} .*computes into this store"):
        run(file, 0)
    assert load(file)["status"].values.min() == 0
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    run(file, 0)


def test_times_of_files_mean_nothing(tmp_path: Path, undisturbed: object) -> None:
    """A clock that was set back, or a file that was copied, changes nothing."""
    file = tmp_path / "s.db"
    run(file, 0)
    os.utime(file, (2e9, 2e9))
    copy = Path(shutil.copy(file, tmp_path / "copy.db"))
    with closing(sqlite3.connect(file)) as base:
        before = base.execute("select rowid, * from points").fetchall()
    for one in (file, copy):
        assert run(one, 0).identical(undisturbed)  # type: ignore[attr-defined]
        with closing(sqlite3.connect(one)) as base:
            assert base.execute("select rowid, * from points").fetchall() == before


SMALL_DISK = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    import numpy as np
    from selftrain import sweep

    def large(x):
        return {"row": np.full(4000, float(x))}

    try:
        sweep(over={"x": tuple(range(400))}, task=large, workers=0, store=sys.argv[1])
    except OSError as error:
        print(error.filename, error.strerror, sep="|")
    """
)


def isolated(script: Path, folder: Path, mount: str) -> subprocess.CompletedProcess[str]:
    """Run a script with a file system of its own mounted on a folder."""
    command = f'mount {mount} "{folder}" && exec "{sys.executable}" "{script}" "{folder}/s.db"'
    return subprocess.run(
        ["unshare", "-rm", "sh", "-c", command], capture_output=True, text=True, check=False
    )


needs_mounts = pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode != 0,
    reason="this machine lets no user mount a file system",
)


@needs_mounts
def test_a_full_disk_is_named(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SMALL_DISK)
    folder = tmp_path / "disk"
    folder.mkdir()
    ran = isolated(script, folder, "-t tmpfs -o size=1m tmpfs")
    file, _, reason = ran.stdout.strip().partition("|")
    assert reason == "No space left on device", ran.stderr
    assert file == str(folder / "s.db")


@needs_mounts
def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom selftrain import sweep, SelfTrainError\n"
        "def print_it(x):\n    print(x)\n"
        "try:\n    sweep(over={'x': (1, 2)}, task=print_it, workers=0, store=sys.argv[1])\n"
        "except SelfTrainError as error:\n    print(error)\n"
    )
    folder = tmp_path / "disk"
    folder.mkdir()
    ran = isolated(script, folder, "-t tmpfs -o ro tmpfs")
    assert "cannot be written: Read-only file system" in ran.stdout, ran.stderr
    assert ran.stdout.count("\n") == 1


def test_a_place_that_cannot_be_a_store_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(SelfTrainError, match="cannot be written"):
        run(tmp_path / "file" / "s.db", 0)
    with pytest.raises(StoreError, match="it is not a store of sweeps"):
        run(tmp_path / "file", 0)
    assert (tmp_path / "file").read_text() == "mine"
    with pytest.raises(StoreError, match="it is a folder; a store is a file"):
        run(tmp_path, 0)
    with closing(sqlite3.connect(tmp_path / "other.db")) as base:
        base.execute("create table cats (name text)")
    with pytest.raises(StoreError, match="it is not a store of sweeps"):
        run(tmp_path / "other.db", 0)
    assert len(Store(tmp_path / "none.db")) == 0
    assert not (tmp_path / "none.db").exists()


def test_a_store_of_selftrain_1_is_named(tmp_path: Path) -> None:
    (tmp_path / "00000001.points").write_bytes(b"selftrain points 2 ...")
    for open_it in (load, lambda folder: run(folder, 0)):
        with pytest.raises(StoreError, match=r"a store of selftrain 1.*use another name"):
            open_it(tmp_path)
