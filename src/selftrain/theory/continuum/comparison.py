r"""A discrete run next to its limit of continuous time, at the times $\tau_t = \sum_{i \le
t}\lambda_U^{(i)}$ of its steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrays import Array
from ...errors import InvalidInput
from ..trajectory import Trajectory
from .points import NAMES
from .timeline import check_continuous, stretches

if TYPE_CHECKING:
    import pandas as pd

    from .path import ContinuumPath


@dataclass(frozen=True, eq=False)
class ContinuumComparison:
    r"""A discrete run minus the path, at the times of its steps.

    Attributes:
        tau: $\tau_t$ of the steps the path reaches.
        difference: arrays over those steps, by name (as in `Points`).
    """

    tau: Array
    difference: dict[str, Array]

    @property
    def largest(self) -> dict[str, float]:
        """The largest absolute difference of each quantity."""
        return {name: float(np.abs(values).max()) for name, values in self.difference.items()}

    def to_frame(self) -> pd.DataFrame:
        """The differences, one row per step, indexed by tau."""
        import pandas as pd

        return pd.DataFrame(self.difference, index=pd.Index(self.tau, name="tau"))

    def __str__(self) -> str:
        largest = self.largest
        shown = ", ".join(
            f"{name} {largest[name]:.2g}" for name in ("m", "q", "bias", "cosine", "error")
        )
        count = self.tau.size - 1
        return f"largest difference over {count} step{'' if count == 1 else 's'}: {shown}"


def difference(path: ContinuumPath, run: Trajectory) -> ContinuumComparison:
    """The run minus the path, at the steps the path reaches."""
    check_same(path, run)
    times = np.append(0.0, np.cumsum(run.recipe.at_steps(run.problem.steps).lambda_u))
    times[np.isclose(times, path.until, rtol=1e-12, atol=0)] = path.until
    within = (times <= path.until) & np.isfinite(run.m)
    if within.sum() < 2:
        accepted = f"a first step by the end of the path, tau = {path.until:g}, is accepted"
        raise InvalidInput("lambda_u", run.recipe.lambda_u, accepted)
    here = path(times[within])
    theirs = {
        "m": run.m, "v": run.v, "bias": run.bias, "q": run.q, "cosine": run.cosine,
        "squared_cosine": run.m**2 / run.q, "one_minus_squared_cosine": run.v / run.q,
        "bias_to_norm": run.bias_to_norm, "error": run.error,
    }  # fmt: skip
    apart = {name: theirs[name][within] - getattr(here, name) for name in NAMES}
    return ContinuumComparison(times[within], apart)


def check_same(path: ContinuumPath, run: Any) -> None:
    """Refuse a run that does not go over into this path as its ridge goes to zero."""
    if not isinstance(run, Trajectory):
        raise InvalidInput("run", run, "a result of selftrain.solve is accepted")
    check_continuous(run.problem, run.recipe)
    ours, theirs = (
        (
            one.problem.alpha_l, one.problem.labeled, one.problem.loss_names,
            one.problem.test_mixture, one.recipe.lambda_l, one.recipe.fix_bias,
        )
        for one in (path, run)
    )  # fmt: skip
    end = math.fsum(run.recipe.at_steps(run.problem.steps).lambda_u)
    before = min(end, path.until) * (1 - 1e-12)
    mine = [stretch for stretch in path.stretches if stretch.begin < before]
    other = [stretch for stretch in stretches(run.problem, run.recipe) if stretch.begin < before]
    same = len(mine) == len(other) and all(
        a.batch == b.batch
        and math.isclose(a.begin, b.begin, rel_tol=1e-9)
        and math.isclose(a.sharpens, b.sharpens, rel_tol=1e-9)
        and math.isclose(a.sharpened, b.sharpened, rel_tol=1e-9, abs_tol=1e-9 * a.sharpens * end)
        for a, b in zip(mine, other, strict=True)
    )
    if ours != theirs or not same:
        accepted = "a run from the same labelled set and start, with the same loss and batches"
        raise InvalidInput("run", run, accepted)
