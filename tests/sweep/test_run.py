"""Points are computed once, kept, and computed anew only when they must be."""

from __future__ import annotations

import hashlib
import io
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from inspect import getsource
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from selftrain import Problem, Recipe, SelfTrainError, solve
from selftrain.sweep import Computation, Grid, Output, Store, Task, complete
from selftrain.sweep.batches import BATCH_SECONDS, Job, Queue
from selftrain.sweep.store import (
    FORMAT,
    LIST,
    MAGIC,
    DamagedPart,
    Finished,
    StoreError,
    pack,
    read_part,
)

sys.path.insert(0, str(Path(__file__).parent))
from call_log import FILE, note, noted


def last_error(rho: float, ridge: float) -> dict[str, object]:
    note((rho, ridge))
    run = solve(Problem(0.5, 2.0, rho, 0.5, steps=3), Recipe(lambda_u=ridge))
    return {"t": run.t, "error": run.error, "cosine": float(run.cosine[-1])}


def refused(ridge: float) -> dict[str, object]:
    return {"error": 1.0} if ridge > 0 else {"error": Recipe(lambda_u=ridge)}


OUTPUTS = {
    "t": Output("t", ("t",)),
    "error": Output(r"\epsilon_g", ("t",)),
    "cosine": Output(r"m/\sqrt q"),
}
WORK = Computation(last_error, OUTPUTS)
GRID = Grid({"rho": (0.3, 0.5), "ridge": (0.01, 0.1)})


@pytest.fixture
def store(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FILE, str(tmp_path_factory.mktemp("calls") / "calls"))
        yield Store(tmp_path)


def forget_calls() -> None:
    Path(os.environ[FILE]).unlink()


def finish(task: Task, store: Store, **options: object) -> list[str]:
    """Complete a task in this process; what was noticed."""
    notices: list[str] = []
    assert complete([task], store, workers=0, notice=notices.append, **options) == []
    return notices


def test_the_dataset_has_axes_values_and_symbols(store: Store) -> None:
    task = Task(WORK, GRID)
    finish(task, store)
    data = task.load(store)
    assert data["error"].dims == ("rho", "ridge", "t")
    assert data["error"].attrs == {"symbol": r"\epsilon_g", "units": "1"}
    run = solve(Problem(0.5, 2.0, 0.3, 0.5, steps=3), Recipe(lambda_u=0.1))
    np.testing.assert_array_equal(data["error"].sel(rho=0.3, ridge=0.1), run.error)
    assert float(data["cosine"].sel(rho=0.3, ridge=0.1)) == run.cosine[-1]
    assert task.taken(store) > 0


def test_nothing_is_computed_twice(store: Store) -> None:
    finish(Task(WORK, GRID), store)
    finish(Task(WORK, GRID), store)
    assert len(noted()) == len(set(noted())) == 4


def test_a_changed_parameter_computes_only_its_own_points(store: Store) -> None:
    finish(Task(WORK, GRID), store)
    forget_calls()
    finish(Task(WORK, Grid({"rho": (0.3, 0.4, 0.5), "ridge": (0.01, 0.1)})), store)
    assert noted() == [(0.4, 0.01), (0.4, 0.1)]


def test_a_changed_version_computes_everything_that_has_it_and_nothing_else(store: Store) -> None:
    other = Computation(refused, {"error": Output("e")})
    finish(Task(WORK, GRID), store)
    finish(Task(other, Grid({"ridge": (0.1,)})), store)
    forget_calls()
    newer = Computation(last_error, OUTPUTS, version=2)
    finish(Task(newer, GRID), store)
    assert len(noted()) == 4
    assert Task(other, Grid({"ridge": (0.1,)})).stored(store) == 1


@pytest.mark.parametrize("harm", ["flip", "cut", "empty", "other", "odd"])
def test_a_damaged_part_is_noticed_and_its_points_computed_anew(store: Store, harm: str) -> None:
    task = Task(WORK, GRID)
    finish(task, store)
    whole = task.load(store)
    path = sorted(store.folder.glob("*.points"))[0]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    odd = pack([Finished("a key", {"error": np.zeros(2)}, 0.0)])
    path.write_bytes(
        {
            "flip": bytes(content),
            "cut": bytes(content)[: len(content) // 2],
            "empty": b"",
            "other": b"not points at all\n",
            "odd": odd,
        }[harm]
    )
    again = Store(store.folder)
    with pytest.raises(SelfTrainError, match=str(path) if harm != "odd" else "not in the store"):
        task.load(again)
    forget_calls()
    notices = finish(task, again)
    assert [str(path) in notice for notice in notices] == ([] if harm == "odd" else [True])
    assert 0 < len(noted()) < len(GRID)
    assert task.load(again).identical(whole)
    assert finish(task, Store(store.folder)) == []


@pytest.mark.parametrize(
    "listed",
    [
        "[1]",
        "{}",
        "[[1, 2, 3, 4, 5]]",
        '[["k", "x", null, 0, 0]]',
        '[["k", 1, null, 0, 9]]',
        "nonsense",
    ],
)
def test_odd_contents_with_a_right_checksum_are_damage_and_no_raw_error(
    tmp_path: Path, listed: str
) -> None:
    body = io.BytesIO()
    np.savez(body, **{LIST: np.array(listed), "0/error": np.zeros(3)})
    content = body.getvalue()
    path = tmp_path / "00000001.points"
    digest = hashlib.sha256(content).hexdigest().encode()
    path.write_bytes(b"%s %d %s\n%s" % (MAGIC, FORMAT, digest, content))
    if listed == "{}":
        assert read_part(path) == []
        return
    with pytest.raises(DamagedPart, match=str(path)):
        read_part(path)


def test_a_store_of_another_format_is_refused(store: Store) -> None:
    finish(Task(WORK, GRID), store)
    path = next(store.folder.glob("*.points"))
    path.write_bytes(path.read_bytes().replace(b"points %d" % FORMAT, b"points 77", 1))
    with pytest.raises(StoreError, match="format 77"):
        Store(store.folder)


def test_a_point_that_fails_is_told_and_the_others_are_kept(store: Store) -> None:
    task = Task(Computation(refused, {"error": Output("e")}), Grid({"ridge": (-1.0, 0.1)}))
    (failure,) = complete([task], store, workers=0)
    assert "refused(ridge=-1.0)" in str(failure)
    assert "lambda_u = -1.0" in failure.reason
    assert task.stored(store) == 1
    with pytest.raises(SelfTrainError, match="not in the store"):
        task.load(store)


def module_of(folder: Path, name: str) -> ModuleType:
    """`last_error` in a module of its own, loaded from a folder that is not on the path."""
    source = "import os\nfrom selftrain import Problem, Recipe, solve\n"
    source += getsource(note) + getsource(last_error)
    (folder / f"{name}.py").write_text(source)
    spec = spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_points_are_the_same_in_other_processes(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    work = Computation(module_of(tmp_path, "on_the_path").last_error, OUTPUTS)
    task = Task(work, GRID)
    finish(task, store)
    elsewhere = Store(tmp_path / "elsewhere")
    assert complete([task], elsewhere, workers=2) == []
    assert task.load(elsewhere).identical(task.load(store))


def test_a_function_that_workers_cannot_import_is_named(store: Store, tmp_path: Path) -> None:
    work = Computation(module_of(tmp_path, "not_on_the_path").last_error, OUTPUTS)
    with pytest.raises(SelfTrainError, match=r"could not load its work.*not_on_the_path"):
        complete([Task(work, GRID)], store, workers=2)


def test_cheap_points_travel_together_and_long_ones_alone() -> None:
    work = Computation(refused, None, seconds=lambda **_: 1.0)
    cheap = [Job(str(i), work, {"x": i}, BATCH_SECONDS / 5) for i in range(200)]
    long = [Job(str(-i), work, {"x": -i}, 3 * BATCH_SECONDS) for i in range(2)]
    queue = Queue([*long, *cheap], slots=2)
    batches = []
    while queue:
        batches.append(queue.take())
    sizes = [len(batch.jobs) for batch in batches]
    assert sizes[:4] == [1, 1, 5, 5]
    assert sizes[-1] == 1, "the last batches are small, so that all workers end together"
    assert [job for batch in batches for job in batch.jobs] == [*long, *cheap]


SLOW = textwrap.dedent(
    """
    import sys, time
    from selftrain.sweep import Computation, Grid, Output, Store, Task, complete

    def square(x):
        time.sleep(0.15)
        return {"square": x**2 / 3}

    work = Computation(square, {"square": Output("x^2/3")}, seconds=lambda x: 1.0)
    task = Task(work, Grid({"x": tuple(range(40))}))
    store = Store(sys.argv[1])
    complete([task], store, workers=2)
    print(task.load(store)["square"].values.tolist())
    """
)


@pytest.mark.parametrize("ended", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_was_ended_resumes_with_what_it_had(tmp_path: Path, ended: int) -> None:
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    folder = tmp_path / "points"
    command = [sys.executable, str(script), str(folder)]
    first = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # ignored in background jobs
    )
    limit = time.monotonic() + 60
    while len(list(folder.rglob("*.points"))) < 4 and time.monotonic() < limit:
        time.sleep(0.02)
    os.kill(first.pid, ended)
    first.communicate(timeout=30)
    kept = {path: path.stat().st_mtime_ns for path in folder.rglob("*.points")}
    assert 4 <= len(kept) < 40
    resumed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert resumed.stdout.strip() == str([x**2 / 3 for x in range(40)])
    assert not list(folder.rglob("*.part"))
