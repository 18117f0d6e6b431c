"""The tasks by name: what each can keep, keeps unless asked, and takes as options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InvalidInput, nearest
from ..problem import Problem
from ..recipe import Recipe
from .computation import Output
from .tasks import continuum, optimize, simulate, solve
from .tasks.quantities import PATH


@dataclass(frozen=True)
class Kind:
    """A task that is known by name.

    Attributes:
        function: computes a point.
        check: refuses a point that it could not compute.
        outputs: all that it can keep.
        default: what it keeps if nothing is asked for.
        options: names of arguments that it takes besides problem and recipe.
        axes: options that may vary over the grid.
        chained: whether a point of this problem, recipe and options may start from points before
            it; then `link` names what it takes from them.
    """

    function: Callable[..., dict[str, Any]]
    check: Callable[..., None]
    outputs: Mapping[str, Output]
    default: tuple[str, ...]
    options: tuple[str, ...]
    axes: tuple[str, ...] = ()
    chained: Callable[[Problem, Recipe, Mapping[str, Any]], bool] | None = None
    link: str = ""

    def kept(self, keep: Sequence[str]) -> dict[str, Output]:
        """The outputs of these names, in their order; an unknown one is refused."""
        names = tuple(keep) or self.default
        for name in names:
            if name not in self.outputs:
                plain = [known for known in self.outputs if not known.endswith(PATH)]
                raise InvalidInput("keep", name, f"unknown quantity; {nearest(str(name), plain)}")
        if any(name.endswith(PATH) for name in names) and "t" not in names:
            names = ("t", *names)
        return {name: self.outputs[name] for name in names}

    def checked(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options that the task knows."""
        for name, value in options.items():
            if name not in self.options:
                raise InvalidInput(name, value, f"unknown option; {nearest(name, self.options)}")
        return dict(options)


KINDS = {
    "solve": Kind(
        solve.solved,
        solve.check,
        solve.OUTPUTS,
        ("error", "cosine", "collapsed_at"),
        ("tolerance",),
    ),
    "optimize": Kind(
        optimize.tuned,
        optimize.check,
        optimize.OUTPUTS,
        ("error", "labeled_only", "bayes"),
        ("over", "bounds", "schedule", "starts", "tolerance", "limit", "method"),
        chained=optimize.single_start,
        link=optimize.COORDINATES,
    ),
    "simulate": Kind(
        simulate.simulated,
        simulate.check,
        simulate.OUTPUTS,
        ("error", "error_se"),
        ("features", "seeds", "method", "probes", "tolerance"),
        ("features",),
    ),
    "continuum": Kind(
        continuum.continuous,
        continuum.check,
        continuum.OUTPUTS,
        ("error", "cosine"),
        ("until", "tolerance"),
        ("until",),
    ),
}
