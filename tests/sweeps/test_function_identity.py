"""A store gives back what the same call would compute: whatever changes a value changes its key,
and nothing else does.
"""

from __future__ import annotations

import cmath
import functools
import itertools
import json
import math
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import closing
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, log1p

from selftrain import Problem, Recipe, SelfTrainError, solve, sweep
from selftrain.errors import InvalidInput
from selftrain.losses import register
from selftrain.sweeps import Computation
from selftrain.sweeps.function_identity import identify

HERE = Path(__file__).parent
CASES = [
    "array", "dataclass", "instance", "recipe", "partial", "default", "cached helper",
    "compiled helper", "cached", "compiled", "closures", "method calls", "nested", "lambdas",
    "task is partial", "task is object", "bound method", "closure",
]  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, float]]:
    """The script with one number, then with another, on the same stores."""
    stores = tmp_path_factory.mktemp("stores")
    found = {}
    for number in (1, 20):
        command = [sys.executable, str(HERE / "identity_script.py"), str(stores), str(number)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        found[number] = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize("case", CASES)
def test_a_script_with_other_state_gets_other_values(
    runs: dict[int, dict[str, float]], case: str
) -> None:
    assert [runs[number][case] for number in (1, 20)] == [1.0, 20.0]


class Scaled:
    """The logistic loss times a constant."""

    name = "scaled logistic"
    classes = (0.0, 1.0)
    kinks: tuple[float, ...] = ()

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def link(self, logit: Any) -> Any:
        return expit(logit)

    def value(self, target: Any, logit: Any) -> Any:
        return self.scale * (np.logaddexp(0.0, logit) - target * logit)

    def slope(self, target: Any, logit: Any) -> Any:
        return self.scale * (expit(logit) - target)

    def curvature(self, target: Any, logit: Any) -> Any:
        return self.scale * expit(logit) * expit(-logit) + 0 * target

    def third(self, target: Any, logit: Any) -> Any:
        slope = expit(logit) * expit(-logit)
        return self.scale * slope * (expit(-logit) - expit(logit)) + 0 * target


@pytest.mark.parametrize("given_as", ["object", "name", "axis"])
def test_a_loss_with_another_attribute_gets_other_values(tmp_path: Path, given_as: str) -> None:
    """Given as an object, by the name under which it was registered, or as an axis of names."""
    problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=0)
    seen = []
    for scale in (1.0, 20.0):
        loss = Scaled(scale)
        given = problem.replace(loss=loss if given_as == "object" else register(loss).name)
        start, axes = given, {"rho": [0.4]}
        if given_as == "axis":
            start, axes = problem, {"loss": [loss.name]}
        data = sweep(start, Recipe(), over=axes, workers=0, store=tmp_path / "s.db")
        assert float(data["error"][0]) == solve(given, Recipe()).error[-1]
        seen.append(float(data["error"][0]))
    assert seen[0] != seen[1]


def imported(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> ModuleType:
    """A module of the user, in a folder that modules are imported from."""
    (folder / f"{name}.py").write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(folder)
    return import_module(name)


def value(task: Callable[..., Any], store: Path | None, **how: Any) -> float:
    how = {"workers": 0, **how}
    data = sweep(over={"x": [1.0]}, task=task, store=store, progress=False, **how)
    return float(data["value"].values[0])


MODULE = """
    import math
    SCALE = 2

    def scaled(scale):
        def inner(x):
            return scale * x
        return inner

    class Scaler:
        def __init__(self, scale):
            self.scale = scale

        def times(self, x):
            return self.scale * x

    def constant(x):
        return SCALE * math.sqrt(x)
"""


def test_state_of_an_imported_module_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = imported(tmp_path, monkeypatch, "own_state", MODULE)
    for scale in (1, 20):
        assert value(own.scaled(scale), tmp_path / "closure.db") == scale
        assert value(own.Scaler(scale).times, tmp_path / "method.db") == scale
        monkeypatch.setattr(own, "SCALE", scale)
        assert value(own.constant, tmp_path / "constant.db") == scale


def test_a_module_that_a_function_names_counts_by_what_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = imported(tmp_path, monkeypatch, "own_deep", "SCALE = 1\nASIDE = 1\n")
    text = """
        import own_deep
        def at_top(x): return own_deep.SCALE * x
        def inside(x):
            from own_deep import SCALE
            return SCALE * x
        def by_name(x): return getattr(own_deep, "SC" + "ALE") * x
    """
    own = imported(tmp_path, monkeypatch, "own_names", text)
    named, hidden = (own.at_top, own.inside), own.by_name
    before = [identify(task) for task in (*named, hidden)]
    monkeypatch.setattr(deep, "ASIDE", 2)
    assert [identify(task) for task in named] == before[:2]
    monkeypatch.setattr(deep, "SCALE", 2)
    for task, old in zip((*named, hidden), before, strict=True):
        assert identify(task) != old


def test_what_was_changed_in_a_module_reaches_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would import it as it is on disk; a memo that is filled here is such a change, too."""
    text = """
        SCALE, MEMO = 2, {}
        class Scaler:
            def times(self, x): return SCALE * x
        def f(x):
            if x not in MEMO:
                MEMO[x] = Scaler().times(x)
            return MEMO[x]
    """
    own = imported(tmp_path, monkeypatch, "own_changed", text)
    assert own.f(3.0) == 6
    monkeypatch.setattr(own, "SCALE", 5)
    for store, how in ((None, {}), (tmp_path / "store.db", {}), (None, {"time_limit": 60.0})):
        assert value(own.f, store, workers=1, **how) == 5
    assert own.MEMO == {3.0: 6}


def test_workers_that_would_compute_something_else_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a function imports when it is called does not travel."""
    deep = imported(tmp_path, monkeypatch, "own_inside", "SCALE = 2\n")
    text = "def f(x):\n    from own_inside import SCALE\n    return SCALE * x\n"
    own = imported(tmp_path, monkeypatch, "own_importing", text)
    assert value(own.f, None, workers=1) == 2
    monkeypatch.setattr(deep, "SCALE", 5)
    for store in (None, tmp_path / "store.db"):
        with pytest.raises(SelfTrainError, match="a worker would compute something else"):
            value(own.f, store, workers=1)


FILES = {
    "own/__init__.py": "",
    "own/jobs/__init__.py": "",
    "own/jobs/points.py": "def point(x):\n    from ..law import rule\n    return rule.value(x)\n",
    "own/law/__init__.py": "",
    "own/law/rule.py": "from own.deep.constant import C\ndef value(x): return C * x\n",
    "own/deep/__init__.py": "",
    "own/deep/constant.py": "C = 2\n",
}
DIGEST = """
import sys
sys.path.insert(0, sys.argv[1])
import own.jobs.points as points
from selftrain.sweeps import Computation
print(Computation(points.point, None).digest)
"""


def printed(command: list[str], **environment: str) -> str:
    environment = {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_change_two_packages_away_counts_and_a_comment_does_not(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-c", DIGEST, str(tmp_path)]
    before = printed(command)
    (tmp_path / "own/deep/constant.py").write_text('"""Says."""\nC = 2  # two\n')
    point = '# says\ndef point(x):\n    """Says."""\n\n    from ..law import rule  # here\n'
    (tmp_path / "own/jobs/points.py").write_text(point + "    return rule.value(x)\n")
    assert printed(command) == before
    (tmp_path / "own/deep/constant.py").write_text("C = 3\n")
    assert printed(command) != before


STEADY = """
import enum, os, re, sys, collections, logging, threading
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial, singledispatch
from typing import Any, NamedTuple
import numpy as np
from numba import njit
from scipy.stats import norm
from selftrain import Problem, Recipe, sweep
from selftrain.sweeps import Computation

class Color(enum.Enum):
    RED = "r"
    BLUE = "b"

class Right(enum.Flag):
    READ = 1
    WRITE = 2

class Pair(NamedTuple):
    left: int
    right: float = 2.0

@dataclass(frozen=True)
class Setting:
    names: set = field(default_factory=lambda: {"alpha", "beta", "gamma"})
    kind: Color = Color.BLUE

    @property
    def size(self):
        return len(self.names)

class Base:
    __slots__ = ("scale",)
    def __init__(self, scale): self.scale = scale

class Child(Base):
    def __init__(self, scale):
        super().__init__(scale)
        self.other = "".join(["al", "pha"])

    @property
    def both(self): return self.scale

    @cached_property
    def twice(self): return 2 * self.scale

    @lru_cache
    def times(self, x): return self.scale * x

LOG, WORD = logging.getLogger("steady"), re.compile("a+")
SETTING, PAIR, CHILD = Setting(), Pair(1), Child(3)
NAMES = frozenset(SETTING.names)
SIZES = collections.defaultdict(list, {"a": [1, float("nan"), -0.0], "b": [PAIR, PAIR]})
PROBLEM, DRAW = Problem(0.5, 2.0, 0.4, 0.5, steps=1), np.random.default_rng(3)
TABLE = np.array([("a", 1.0)], dtype=[("name", "U4"), ("size", "f8")])
LOCK, CIRCLE = threading.Lock(), [1]
CIRCLE.append(CIRCLE)

@njit
def twice(x): return 2 * x

@lru_cache
def odd(n): return False if n == 0 else even(n - 1)

@singledispatch
def kind(x): return 0

@kind.register
def _(x: int): return 1

def even(n): return True if n == 0 else odd(n - 1)

def point(x, *, scale=partial(max, 1)):
    with LOCK:
        LOG.debug("point")
    assert odd(x) == bool(x % 2) and kind(x) == 1 and CHILD.twice == CHILD.times(2) == 6
    assert (Right.READ | Right.WRITE).value == 3
    known = x in {"u", "v", "w"} or "alpha" in NAMES or WORD.match("aa")
    total = sum(len(name) for name in sorted(SETTING.names)) + CHILD.both + len(SIZES)
    return {"y": twice(x) + total + scale(x) + norm.cdf(0.0) + PROBLEM.rho + bool(known)
            + SETTING.size + len(CIRCLE) + TABLE["size"][0] + Color.RED.value.count("r")}

if __name__ == "__main__":
    print(Computation(point, None).digest)
    point(1)  # which fills caches
    print(Computation(point, None).digest)
    how = {"store": sys.argv[1], "workers": 1, "progress": False}
    print(sweep(over={"x": (1, 2, 3, 4)}, task=point, **how)["status"].values.tolist())
"""


def test_the_same_computation_has_the_same_key_in_every_process(tmp_path: Path) -> None:
    """Whatever the seed of hashes; a worker finds what this process sent, and a sweep resumes."""
    (tmp_path / "steady.py").write_text(STEADY)
    script = [sys.executable, str(tmp_path / "steady.py"), str(tmp_path / "s.db")]
    seen, rows = [], []
    for seed in ("1", "2"):
        seen.append(printed(script, PYTHONHASHSEED=seed).splitlines())
        with closing(sqlite3.connect(tmp_path / "s.db")) as base:
            rows.append(base.execute("select rowid, * from points order by key").fetchall())
    assert seen[0] == seen[1]
    assert seen[0][0] == seen[0][1]
    assert seen[0][2] == "[0, 0, 0, 0]"
    assert rows[0] == rows[1] != []


def test_sharing_and_addresses_do_not_count() -> None:
    inner = [1.0]
    shared, apart = [inner, inner], [[1.0], [1.0]]
    assert identify(shared) == identify(apart)
    assert identify({"".join(["a", "b"])}) == identify({"ab"})
    assert identify(1) != identify(1.0) != identify(True)
    assert identify([1, [2]]) != identify([1, 2])
    assert identify(np.zeros(2)) != identify(np.zeros(2, dtype="f4"))
    assert identify({"a": 1, "b": 2}) != identify({"b": 2, "a": 1})  # a loop sees the order


def test_a_wrapper_of_a_library_counts_with_what_it_wraps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs code of the library, and has the name of a function of the user."""
    text = """
        from contextlib import contextmanager
        @contextmanager
        def scaled(x):
            yield {} * x
    """
    one = imported(tmp_path, monkeypatch, "own_once", text.format(1))
    two = imported(tmp_path, monkeypatch, "own_twice", text.format(2))
    assert identify(one.scaled).digest != identify(two.scaled).digest


def test_functions_of_libraries_count_with_their_module() -> None:
    """Two of one name are different functions: compiled, cached, or a method of a state."""
    cached = functools.lru_cache(statistics.mean), functools.lru_cache(np.mean)
    methods = random.Random(1).random, random.Random(2).random
    vectorised = np.log1p, log1p
    pairs = ((math.sqrt, cmath.sqrt), (str.lower, bytes.lower), cached, methods, vectorised)
    for one, other in pairs:
        assert identify(one) == identify(one) != identify(other)


def test_compiled_with_other_options_is_another_function() -> None:
    from numba import njit

    def double(x: float) -> float:
        return 2 * x

    assert identify(njit(double)) == identify(njit(double))
    assert identify(njit(double)) != identify(njit(fastmath=True)(double))
    assert identify(njit("f8(f8)")(double)) != identify(njit("f4(f4)")(double))


def test_what_has_no_identity_is_rejected_with_its_name(tmp_path: Path) -> None:
    with open(os.devnull, encoding="utf-8") as handle:
        counter, vector = itertools.count(), np.frompyfunc(lambda x: x, 1, 1)
        numbers = (n for n in range(3))
        things = {"handle": handle, "counter": counter, "vector": vector, "numbers": numbers}
        for name, thing in things.items():
            space: dict[str, Any] = {name: thing, "__name__": "elsewhere"}
            exec(f"def task(x): return x if {name} else 0", space)
            with pytest.raises(InvalidInput, match=rf"global {name} \(.*without a store"):
                Computation(space["task"], None).key({"x": 1})
            with pytest.raises(InvalidInput, match=name):
                value(space["task"], tmp_path / "s.db")
        with pytest.raises(InvalidInput, match="it cannot be sent"):  # the last is a generator
            value(space["task"], None)


def evaluates(x: float) -> Any:
    return eval("x + 1")


def test_code_that_hides_what_it_uses_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="it calls eval"):
        value(evaluates, tmp_path / "s.db")
