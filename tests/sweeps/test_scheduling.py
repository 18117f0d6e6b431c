"""Points are computed once, stored, and computed again only when they must be."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.util import module_from_spec, spec_from_file_location
from inspect import getsource
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from selftrain import Problem, Recipe, SelfTrainError, solve
from selftrain.errors import StoreError
from selftrain.sweeps import Computation, Grid, Output, Store, Task, complete
from selftrain.sweeps.scheduling import BATCH_SECONDS, Job, Queue
from selftrain.sweeps.store import FORMAT, Finished, _digest

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
        yield Store(tmp_path / "points.db")


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


def flip(content: bytearray, at: int, bit: int = 0) -> None:
    content[at] ^= 1 << bit


def cut(content: bytearray) -> None:
    del content[len(content) // 2 :]


def overwrite(content: bytearray) -> None:
    content[4096 * 2 : 4096 * 3] = bytes(4096)


HARM: dict[str, Callable[[bytearray], object]] = {
    "a number": lambda content: flip(content, content.rindex(b'"<f8"') + 20),
    "a key": lambda content: flip(content, content.index(b"tests.sweeps") - 10),
    "cut": cut,
    "a page": overwrite,
    "the header": lambda content: flip(content, 5),
    "the schema": lambda content: flip(content, content.index(b"CREATE TABLE points") + 3),
    "the size of a page": lambda content: flip(content, 16, 3),
}


@pytest.mark.parametrize("harm", HARM)
def test_damage_is_noticed_and_its_points_computed_again(store: Store, harm: str) -> None:
    """Whatever it hits, a resumed run has the values of the one before."""
    task = Task(WORK, GRID)
    finish(task, store)
    whole = task.load(store)
    content = bytearray(store.path.read_bytes())
    HARM[harm](content)
    store.path.write_bytes(content)
    again = Store(store.path)
    if task.stored(again) < len(GRID):
        with pytest.raises(SelfTrainError, match=f"damaged: {store.path}"):
            task.load(again)
    forget_calls()
    notices = finish(task, again)
    assert notices
    assert all(str(store.path) in notice for notice in notices)
    assert task.load(again).identical(whole)
    assert store.path.with_name("points.db.damaged").exists()
    assert finish(task, Store(store.path)) == []


def test_no_flipped_bit_changes_a_value(store: Store) -> None:
    """In the header, where every bit has a meaning, and at 400 places anywhere."""
    task = Task(WORK, GRID)
    finish(task, store)
    values = {key: store.get(key) for key in task.keys(store)}
    clean, chance = store.path.read_bytes(), random.Random(0)
    places = [(at, bit) for at in range(100) for bit in range(8)]
    places += [(chance.randrange(len(clean)), chance.randrange(8)) for _ in range(400)]
    for at, bit in places:
        content = bytearray(clean)
        flip(content, at, bit)
        store.path.write_bytes(content)
        found = Store(store.path)
        for key, point in values.items():
            read = found.get(key)
            assert found.damage if read is None else same(read, point), (at, bit)


def same(one: Finished | None, other: Finished | None) -> bool:
    assert one is not None
    assert other is not None
    values = all(np.array_equal(one.values[name], other.values[name]) for name in other.values)
    return values and one.seconds == other.seconds and one.reason == other.reason


def test_values_come_back_to_the_last_bit(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    values = {
        "floats": draw.standard_normal((2, 3)) * 10.0 ** draw.integers(-300, 300, (2, 3)),
        "odd": np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324]),
        "single": np.float32(0.1),
        "whole": np.array([2**63 - 1, -(2**63)]),
        "large": np.uint64(2**64 - 1),
        "truth": np.array([True, False]),
        "text": np.array(["a", "longer, \u00e9"]),
        "none": np.zeros((0, 3)),
    }
    store = Store(tmp_path / "s.db")
    with store.writing():
        store.add([Finished("key", values, 0.25, None, "task", {"x": 1})])
    read = Store(tmp_path / "s.db").get("key")
    assert read is not None
    for name, value in values.items():
        found = read.values[name]
        assert (found.dtype, found.shape) == (np.asarray(value).dtype, np.asarray(value).shape)
        assert found.tobytes() == np.asarray(value).tobytes()


def test_other_tools_read_a_store_with_values_that_are_not_finite(tmp_path: Path) -> None:
    """SQLite's own JSON functions, as the page on stores shows them."""
    store = Store(tmp_path / "s.db")
    values = {"error": np.array(0.25), "lost": np.array([np.nan, np.inf])}
    with store.writing():
        store.add([Finished("key", values, 0.1, None, "task", {"sharpness": np.inf})])
    read = """select json_extract("values", '$.error[2]'), json_extract("values", '$.lost[2]'),
              json_extract(parameters, '$.sharpness') from points"""
    with closing(sqlite3.connect(tmp_path / "s.db")) as database:
        assert database.execute(read).fetchall() == [(0.25, '[null,"inf"]', "inf")]


@pytest.mark.parametrize(
    "packed", ["[1]", "3", '{"a": 1}', '{"a": ["<f8", [2], [1.0]]}', "nonsense"]
)
def test_odd_contents_with_a_right_digest_are_damage_and_no_raw_error(
    store: Store, packed: str
) -> None:
    row = ("key", "task", "null", packed, 0.1, None)
    with store.writing():
        store._write("points", [(*row, _digest(*row))])
    assert Store(store.path).damage == [f"{store.path}: row 1 of its points"]


def test_a_store_of_another_format_is_rejected(store: Store) -> None:
    with store.writing():
        store.describe(format="77")
    with pytest.raises(StoreError, match=f"format is 77, .* format {FORMAT}"):
        Store(store.path)


def test_a_point_that_fails_is_told_and_the_others_are_kept(store: Store) -> None:
    task = Task(Computation(refused, {"error": Output("e")}), Grid({"ridge": (-1.0, 0.1)}))
    (failure,) = complete([task], store, workers=0)
    assert "refused(ridge=-1.0)" in str(failure)
    assert "lambda_u must be a finite number > 0" in failure.reason
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
    elsewhere = Store(tmp_path / "elsewhere.db")
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
    queue = Queue([*long, *cheap])
    queue.slots = 2
    batches = []
    while queue:
        batches.append(queue.take())
    sizes = [len(batch) for batch in batches]
    assert sizes[:4] == [1, 1, 5, 5]
    assert sizes[-1] == 1, "the last batches are small, so that all workers end together"
    assert [job for batch in batches for job in batch] == [*long, *cheap]


SLOW = textwrap.dedent(
    """
    import sys, time
    from selftrain.sweeps import Computation, Grid, Output, Store, Task, complete

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
    file = tmp_path / "points.db"
    command = [sys.executable, str(script), str(file)]
    first = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # ignored in background jobs
    )
    limit = time.monotonic() + 60
    while len(rows(file)) < 4 and time.monotonic() < limit:
        time.sleep(0.02)
    os.kill(first.pid, ended)
    first.communicate(timeout=30)
    before = rows(file)
    assert 4 <= len(before) < 40
    resumed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert before <= rows(file)
    assert resumed.stdout.strip() == str([x**2 / 3 for x in range(40)])
    assert sorted(path.name for path in tmp_path.glob("points*")) == ["points.db", "points.db.lock"]


def rows(file: Path) -> set[tuple[object, ...]]:
    """All rows of a store that may be growing."""
    if not file.exists():
        return set()
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as base:
        tables = base.execute("select count(*) from sqlite_master").fetchone()[0]
        return set(base.execute("select rowid, * from points")) if tables else set()
