"""The exceptions of the package, all derived from `SelfTrainError`.

Invalid arguments raise `InvalidInput` (also a `ValueError`); a step without a confirmed solution
raises `StageError`, with the step, the last state and the residual.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .simulation.ensemble import Ensemble
    from .theory.continuum.linear_response import State

__all__ = [
    "ConvergenceError", "EmptySelection", "InvalidInput", "NoExpansion", "NoGradient",
    "SeedError", "SelfTrainError", "StageError", "StateOverflow", "StoreError", "Unreachable",
    "nearest",
]  # fmt: skip


class SelfTrainError(Exception):
    """Base class of all errors raised by this package."""


class InvalidInput(SelfTrainError, ValueError):
    """An argument is invalid.

    The message is one line with the name of the argument, its value, and what must hold.

    >>> print(InvalidInput("rho", 1.5, "must be strictly between 0 and 1"))
    rho must be strictly between 0 and 1, got 1.5
    >>> print(InvalidInput("colour", "red", "unknown key; known: rho"))
    colour = 'red': unknown key; known: rho
    """

    def __init__(self, field: str, value: Any, accepted: str):
        self.field, self.value, self.accepted = field, value, accepted
        rule = accepted.startswith(("must ", "needs "))
        message = f"{field} {accepted}, got {_short(value)}"
        super().__init__(message if rule else f"{field} = {_short(value)}: {accepted}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.field, self.value, self.accepted))


class StageError(SelfTrainError):
    """A step of self-training could not be solved to the requested accuracy.

    Attributes:
        step: index t of the step.
        reason: what happened, as a sentence.
        state: the last state of that step (names as in `Trajectory`).
        residual: relative size of the last Newton step; NaN if there was none.
    """

    def __init__(self, step: int, reason: str, state: Mapping[str, float], residual: float):
        self.step, self.reason, self.state, self.residual = step, reason, dict(state), residual
        known = [] if math.isnan(residual) else [f"residual {residual:.2g}"]
        if self.state:
            values = ", ".join(f"{name}={value:.6g}" for name, value in self.state.items())
            known.append(f"state {values}")
        super().__init__(f"step {step}: {reason}" + (f" ({'; '.join(known)})" if known else ""))

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.step, self.reason, self.state, self.residual))

    def to_dict(self) -> dict[str, Any]:
        """Return the error as plain values; the inverse of `StageError.from_dict`.

        >>> error = EmptySelection(3, "no sample is selected", {"m": 1.0}, math.nan)
        >>> StageError.from_dict(error.to_dict())
        EmptySelection('step 3: no sample is selected (state m=1)')
        """
        return {
            "kind": type(self).__name__,
            "step": self.step,
            "reason": self.reason,
            "state": self.state,
            "residual": self.residual,
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> StageError:
        """Return the error that `to_dict` wrote."""
        kinds = (StageError, ConvergenceError, EmptySelection, StateOverflow)
        kind = {kind.__name__: kind for kind in kinds}[values["kind"]]
        return kind(values["step"], values["reason"], values["state"], values["residual"])


class ConvergenceError(StageError):
    """No start and no fallback gave a solution that a finer quadrature rule confirms."""


NOTHING_SELECTED = "the threshold {threshold} rejects every sample of the batch"
"""The reason of an `EmptySelection`, in theory and simulation."""


class EmptySelection(StageError):
    """The threshold rejects every unlabelled sample of this step."""


class StateOverflow(StageError):
    """The weights of a step overflow, or they underflow and the equations cannot be rescaled."""


class NoExpansion(SelfTrainError):
    r"""A step has no expansion in a small ridge: $\alpha_U P \le 1$, where P is the proportion of
    samples that are selected and at whose logit the second derivative of the loss is not zero.

    Attributes:
        points: $\alpha_U P$, the number of such samples per feature.
        state: the model that makes the pseudo-labels.
        tau: time at which a path in continuous time reached this point; None for a single step.
        selected: all selected samples per feature, with or without curvature.
    """

    def __init__(
        self, points: float, state: State, tau: float | None = None, selected: float | None = None
    ):
        self.points, self.state, self.tau = points, state, tau
        self.selected = points if selected is None else selected
        where = "" if tau is None else f"at tau = {tau:.6g}: "
        at = f"m={state.m:.6g}, q={state.q:.6g}, bias={state.bias:.6g}"
        super().__init__(f"{where}{self._reason()}; {at}")

    def _reason(self) -> str:
        if self.selected > 1 and self.points < self.selected:
            return (
                "alpha_u times the share of selected samples with curvature must be > 1, got"
                f" {self.points:.6g} ({self.selected:.6g} are selected, but at the logits of the"
                " others the curvature of the loss is zero or underflows)"
            )
        return (
            f"alpha_u times the selected share must be > 1, got {self.points:.6g} "
            "(with fewer samples than features the weights move by O(1) however small the ridge)"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.points, self.state, self.tau, self.selected))


class NoGradient(SelfTrainError):
    """A derivative does not exist, or cannot be computed accurately."""


class SeedError(StageError):
    """Some seeds of a simulation failed.

    `step`, `reason`, `state` and `residual` are those of the first failure.

    Attributes:
        ensemble: results of all seeds; those of a failed seed end before the failed step.
        failures: dictionary from each failed seed to its error.
    """

    def __init__(self, ensemble: Ensemble):
        self.ensemble, self.failures = ensemble, ensemble.failures
        seed, first = next(iter(self.failures.items()))
        super().__init__(first.step, first.reason, first.state, first.residual)
        count = len(ensemble.seeds)
        message = f"seed {seed}, {first}"
        if count > 1:
            message = f"{len(self.failures)} of {count} seeds failed: {message}"
        self.args = (message,)

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.ensemble,))


class StoreError(SelfTrainError):
    """A file cannot be used as the store of a sweep: it has another format, is in use, or is not
    writable.
    """


class Unreachable(SelfTrainError):
    """No Dask scheduler answers at the address, or it has no workers."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of an error message: the most similar name, if any, and all known names.

    >>> nearest("logistc", ["logistic", "squared"])
    "did you mean 'logistic'? known: logistic, squared"
    """
    names = sorted(known)
    close = difflib.get_close_matches(str(name), names, n=1)
    hint = f"did you mean '{close[0]}'? " if close else ""
    return f"{hint}known: {', '.join(names)}"


def _short(value: Any) -> str:
    if isinstance(value, PurePath):  # the end of a long path matters more than its beginning
        text = repr(str(value))
        return text if len(text) <= 80 else "'..." + text[-76:]
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."
