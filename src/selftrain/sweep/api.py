"""`sweep`: a diagram in one call. `load`: what a store holds so far."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidInput, SelfTrainError
from ..fields import number
from ..problem import Problem
from ..recipe import Recipe
from ..runtime.files import replacing
from ..runtime.parallel import cores, whole_workers
from ..runtime.progress import ProgressOption, checked_progress, clock
from .computation import name_of
from .kinds import KINDS
from .plan import SweepPlan, as_tuples
from .run import Failure, complete
from .store import KeptInMemory, Store, StoreError
from .work import Limits

if TYPE_CHECKING:
    from .dataset import Sweep

__all__ = [
    "Cost",
    "check_writable",
    "checked_limits",
    "checked_workers",
    "load",
    "plan_of",
    "read_plan",
    "run_plan",
    "sample",
    "sweep",
    "write_plan",
    "write_plan_after_check",
]

PLAN = "plan.json"


def sweep(
    problem: Problem | None = None,
    recipe: Recipe | None = None,
    over: Mapping[str, Any] | None = None,
    task: str | Callable[..., Any] = "solve",
    keep: Sequence[str] = (),
    store: str | Path | None = None,
    workers: int | None = None,
    scheduler: Any = None,
    *,
    options: Mapping[str, Any] | None = None,
    retry: bool = False,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    progress: ProgressOption = None,
    notice: Callable[[str], None] | None = None,
) -> Sweep:
    r"""Compute a task at every point of a grid.

    Arguments:
        problem, recipe: what all points share (`recipe`: default `Recipe()`).
        over: the axes: fields of the problem or the recipe with the values they take. Fields that
            vary together are one axis: `{"case": {"rho": [...], "alpha_u": [...]}}`.
        task: "solve", "optimize", "simulate", "continuum"; or a function, called with the problem
            and the recipe of a point, and with axes that are no fields of these by name. It returns
            a number, or numbers and arrays by name.
        keep: quantities to keep, at the end of a run; `error_path` keeps the whole run over t.
            Default: the errors of the task and what goes with them.
        store: a folder that keeps finished points, so that the same call goes on where it was
            ended; default: none.
        workers: processes; 0: all work is done here, -1: as many as cores. Default: all cores if
            the work is worth starting them.
        scheduler: the address of a Dask scheduler, or a `distributed.Client`.
        options: arguments of the task, as of the function of its name: `{"over": ("lambda_l",
            "lambda_u")}` for "optimize", `{"features": 4096, "seeds": 8}` for "simulate".
        retry: compute points of the store again that failed before.
        time_limit, memory_limit: seconds and bytes that a point may take; beyond, it has failed.
        progress: None, True, False or a function of a `ProgressReport` (`runtime.progress`).
        notice: is called with a sentence about each damaged part of the store; default: `print`.

    Returns:
        An `xarray.Dataset` over the axes, NaN where a point failed; `status` and `reason` say which
        and why; `.plot()` draws it.

    >>> from selftrain import Problem, Recipe, geometric, sweep
    >>> problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=4)
    >>> axes = {"rho": [0.3, 0.5], "lambda_u": geometric(0.01, 0.1, 3)}
    >>> data = sweep(problem, Recipe(), over=axes, keep=("error", "cosine"), workers=0)
    >>> data["error"].dims, data["error"].attrs["symbol"]
    (('rho', 'lambda_u'), '\\epsilon_g')
    """
    plan = plan_of(problem, recipe, over, task, keep, options)
    limits = checked_limits(time_limit, memory_limit)
    data, _ = run_plan(
        plan,
        store,
        workers=checked_workers(workers),
        scheduler=scheduler,
        retry=retry,
        limits=limits,
        progress=checked_progress(progress),
        notice=notice or print,
    )
    return data


def load(store: str | Path) -> Sweep:
    """What a store holds so far of the grid that was last computed into it.

    It may be called while the store grows: points that are not there yet are NaN.
    """
    from .dataset import as_dataset

    plan = read_plan(store)
    return as_dataset(plan, plan.whole.find(Store(store)))


def plan_of(
    problem: Problem | None,
    recipe: Recipe | None,
    over: Mapping[str, Any] | None,
    task: str | Callable[..., Any] = "solve",
    keep: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
) -> SweepPlan:
    """A checked plan of a call."""
    if problem is not None and not isinstance(problem, Problem):
        raise InvalidInput("problem", problem, "a selftrain.Problem is accepted")
    if recipe is not None and not isinstance(recipe, Recipe):
        raise InvalidInput("recipe", recipe, "a selftrain.Recipe is accepted")
    if not isinstance(over, Mapping) or not over:
        raise InvalidInput("over", over, "a mapping of axes to their values is accepted")
    if not (callable(task) or isinstance(task, str)):
        raise InvalidInput("task", task, f"a function, or one of {', '.join(KINDS)}, is accepted")
    if isinstance(keep, str) or not isinstance(keep, Sequence):
        raise InvalidInput("keep", keep, "a sequence of names is accepted")
    if options is not None and not isinstance(options, Mapping):
        raise InvalidInput("options", options, "a mapping of names to values is accepted")
    if problem is not None and recipe is None:
        recipe = Recipe()
    function = task if callable(task) else None
    name = task if isinstance(task, str) else name_of(task)
    axes = {str(axis): _axis(axis, values) for axis, values in over.items()}
    return SweepPlan(name, function, problem, recipe, axes, tuple(keep), as_tuples(options or {}))


def run_plan(
    plan: SweepPlan,
    folder: str | Path | None,
    *,
    notice: Callable[[str], None] = print,
    **how: Any,
) -> tuple[Sweep, list[Failure]]:
    """Compute what is missing of a plan; the dataset, and the points that failed."""
    from .dataset import as_dataset

    store = KeptInMemory() if folder is None else Store(folder)
    if folder is not None:
        write_plan_after_check(plan, folder)
    failures = complete([plan.whole], store, notice=notice, **how)
    return as_dataset(plan, plan.whole.find(store)), failures


@dataclass(frozen=True)
class Cost:
    """How many points a plan has, how many are missing, and what a sample of them took.

    Attributes:
        seconds: of processor time per point, of the sample and of points that were there; None if
            none was missing.
    """

    points: int
    missing: int
    sampled: int
    seconds: float | None

    def sentence(self, workers: int | None) -> str:
        """The cost in words."""
        if self.seconds is None:
            return f"all {self.points} points are there"
        if not self.missing:
            return f"nothing is left to compute after a sample of {self.sampled}"
        count = cores(-1 if workers is None else workers)
        whole = clock(self.missing * self.seconds / count)
        return (
            f"{self.missing} of {self.points} points are missing, {self.seconds:.3g} s each (a "
            f"sample of {self.sampled}): about {whole} with {count} at once"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def sample(
    plan: SweepPlan,
    folder: str | Path,
    *,
    limits: Limits | None = None,
    notice: Callable[[str], None] = print,
) -> Cost:
    """Compute a few of the missing points, far from each other, and say what the rest will take."""
    store = Store(folder)
    write_plan_after_check(plan, folder)
    found = plan.whole.find(store)
    missing = [at for at, one in enumerate(found) if one is None]
    if not missing:
        return Cost(len(found), 0, 0, None)
    taken: list[float] = []
    for at in dict.fromkeys(
        _ready(plan, set(missing), at)
        for at in (missing[0], missing[-1], missing[len(missing) // 2])
    ):
        begin = time.monotonic()
        task = replace(plan.whole, chosen=(at,))
        complete([task], store, workers=0, progress=False, notice=notice, limits=limits)
        done = task.find(store)[0]
        taken.append(0.0 if done is None else done.seconds)
        if len(taken) > 1 and time.monotonic() - begin > LONG_SAMPLE:
            break
    later = taken[1:] or taken  # the first point may have compiled kernels
    before = sorted(one.seconds for one in found if one is not None)[:-1]  # and so the slowest
    seconds = float(np.mean([*before, *later]))
    return Cost(len(found), len(missing) - len(taken), len(taken), seconds)


def _ready(plan: SweepPlan, missing: set[int], place: int) -> int:
    """The missing point at a place, or the one that has to be computed before it."""
    for other in plan.whole.before(place)[:1]:
        if other in missing:
            return _ready(plan, missing, other)
    return place


LONG_SAMPLE = 5.0
"""A point that takes longer is sample enough."""


def write_plan_after_check(plan: SweepPlan, folder: str | Path) -> None:
    """Write down a plan if the folder can be written, and no other process writes there."""
    check_writable(Path(folder))
    write_plan(plan, folder)


def check_writable(folder: Path) -> None:
    """Refuse a folder in which nothing can be written, before anything is computed."""
    with Store(folder).writing():
        pass


def write_plan(plan: SweepPlan, folder: str | Path) -> None:
    """Write down what is computed into a store."""
    target = Path(folder, PLAN)
    try:
        with replacing(target) as part:
            part.write_text(json.dumps(plan.to_dict(), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(target)) from None


def read_plan(folder: str | Path) -> SweepPlan:
    """What is computed into a store."""
    path = Path(folder, PLAN)
    try:
        written = json.loads(path.read_text("utf-8"))
        return SweepPlan.from_dict(written)
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidInput("store", str(folder), "no sweep was computed into this folder") from None
    except SelfTrainError as error:
        raise StoreError(f"{path}: {error}") from None
    except (OSError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:100]
        raise StoreError(f"{path}: damaged ({reason}); the same sweep writes it anew") from None


def _axis(axis: Any, values: Any) -> Any:
    """The values of an axis as plain tuples."""
    if isinstance(values, Mapping):
        return {str(name): _axis(name, column) for name, column in values.items()}
    if hasattr(values, "__array__"):
        values = np.asarray(values).tolist()
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise InvalidInput(str(axis), values, "an axis is a sequence of one value or more")
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    return as_tuples(plain)


def checked_limits(seconds: Any, memory: Any) -> Limits:
    """The most that a point may take: seconds and bytes."""
    if seconds is not None:
        accepted = "a number of seconds > 0 is accepted"
        seconds = number("time_limit", seconds, lambda value: 0 < value < 1e9, accepted)
    if memory is not None:
        accepted = "a whole number of bytes > 0 is accepted"
        size = number("memory_limit", memory, lambda n: 0 < n < 2**62 and n % 1 == 0, accepted)
        memory = int(size)
    return Limits(seconds, memory)


def checked_workers(workers: Any) -> int | None:
    """Validate `workers`; None leaves the choice to the sweep."""
    return None if workers is None else whole_workers(workers)
