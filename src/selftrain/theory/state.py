r"""A model between two steps, in every form: `State`, ($\omega, \mu, \nu^2$, B), unknowns, order
parameters.

All maps between the forms live here. Order parameters are the rows of a trajectory
(`trajectory.STATE`): m, v, B, $\chi$, R, $\hat Q$, $\hat\chi$, $\hat m$, $\hat R$. The unknowns of
a step are those of `step.equations`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Array
from ..errors import InvalidInput
from ..fields import number
from ..runtime.kernels import kernel
from .step.equations import BIAS, ETA, LOG_CHI, LOG_R, A, Frame, scales

if TYPE_CHECKING:
    from .trajectory import Trajectory

__all__ = ["State", "labelling", "solution", "to_state", "unknowns_at"]


@dataclass(frozen=True)
class State:
    r"""A linear classifier as the theory sees it.

    Attributes:
        m: overlap with the cluster direction, $v \cdot w/N$.
        v: squared norm of the weights off that direction, $q - m^2$.
        bias: $B$.

    >>> State(m=0.6, v=0.64, bias=-0.1).cosine
    0.6
    """

    m: float
    v: float
    bias: float

    def __post_init__(self) -> None:
        for name, accepts, accepted in _FIELDS:
            object.__setattr__(self, name, number(name, getattr(self, name), accepts, accepted))
        if not 1e-307 <= self.q <= 1e307:
            accepted = (
                "weights that are not all zero, with m^2 + v from 1e-307 to 1e307, are accepted"
            )
            raise InvalidInput("m, v", (self.m, self.v), accepted)

    @classmethod
    def at(cls, trajectory: Trajectory, t: int) -> State:
        """The state after step t of a solved run."""
        whole = isinstance(t, (int, np.integer)) and not isinstance(t, bool)
        if not whole or not 0 <= t < trajectory.good_steps:
            accepted = f"a solved step, from 0 to {trajectory.good_steps - 1}"
            raise InvalidInput("t", t, accepted)
        values = (trajectory.m[t], trajectory.v[t], trajectory.bias[t])
        return cls(*(float(value) for value in values))

    @property
    def q(self) -> float:
        """Squared norm of the weights."""
        return self.m * self.m + self.v

    @property
    def norm(self) -> float:
        r"""$\omega = \sqrt q$."""
        return math.hypot(self.m, math.sqrt(self.v))

    @property
    def cosine(self) -> float:
        r"""$\mu = m/\sqrt q$."""
        return self.m / self.norm

    @property
    def misalignment(self) -> float:
        r"""$\nu^2 = v/q = 1 - M$, to full relative accuracy."""
        return (math.sqrt(self.v) / self.norm) ** 2


def _finite(value: float) -> bool:
    return math.isfinite(value)


_FIELDS: tuple[tuple[str, Any, str], ...] = (
    ("m", _finite, "a finite number is accepted"),
    ("v", lambda value: 0 <= value < math.inf, "a finite number >= 0 is accepted (q - m^2)"),
    ("bias", _finite, "a finite number is accepted"),
)


def labelling(m: Any, v: Any, bias: Any) -> Array:
    r"""($\omega, \mu, \nu^2$, B) in the last axis: what the next step is given of a model (m, v,
    B).
    """
    norm = np.hypot(m, np.sqrt(v))
    return np.stack([norm, m / norm, v / norm**2, bias], axis=-1)


def solution(trajectory: Trajectory, last: int) -> tuple[Array, Array]:
    r"""States ($\omega, \mu, \nu^2$, B) and zero-based unknowns ($a, \eta, B, \ln r, \ln\chi$) of
    steps 0..`last`; unknowns in the units of their step, states in those of the step after, which
    starts from them.
    """
    upto = slice(last + 1)
    overlap, chi_hat, m_hat, bias = (
        trajectory.scaled(name)[upto] for name in ("overlap", "chi_hat", "m_hat", "bias")
    )
    chi, states = trajectory.chi[upto], states_of(trajectory)[upto]
    states[:-1, [0, 3]] *= unit_changes(trajectory)[1 : last + 1, None]
    along = np.append(0.0, overlap[1:] / states[:-1, 0])
    noise = 0.5 * np.log(chi_hat) + np.log(chi)
    unknowns = np.column_stack([along, m_hat * chi, bias, noise, np.log(chi)])
    return states, unknowns


def states_of(trajectory: Trajectory) -> Array:
    r"""($\omega, \mu, \nu^2$, B) after each step, in the units of the step (`theory.fading`)."""
    return labelling(*(trajectory.scaled(name) for name in ("m", "v", "bias")))


def unit_changes(trajectory: Trajectory) -> Array:
    """By what the state before each step is multiplied to be in the units of the step: 1 unless
    weights fade.
    """
    if trajectory.fading is None:
        return np.ones(trajectory.problem.steps + 1)
    return np.ldexp(1.0, np.diff(trajectory.fading.exponents, prepend=0))


def state_before(trajectory: Trajectory, t: int) -> Array:
    r"""($\omega, \mu, \nu^2$, B) that step t >= 1 starts from, in its units."""
    values = (trajectory.scaled(name)[t - 1] for name in ("m", "v", "bias"))
    state = labelling(*values)
    state[[0, 3]] *= unit_changes(trajectory)[t]
    return state


def unknowns_at(trajectory: Trajectory, t: int, about: Frame) -> Array:
    """The unknowns z of the equations of a solved step, from its order parameters."""
    chi = trajectory.chi[t]
    z = np.zeros(5)
    if t > 0:
        z[A] = trajectory.scaled("overlap")[t] / about.omega - about.offset
    z[ETA] = trajectory.scaled("m_hat")[t] * chi
    z[BIAS] = trajectory.scaled("bias")[t] - about.old_bias
    z[LOG_R] = 0.5 * np.log(trajectory.scaled("chi_hat")[t]) + np.log(chi)
    z[LOG_CHI] = np.log(chi)
    return z


@kernel(error_model="numpy")
def to_state(z: Any, about: Frame, balanced: bool, row: Any, new: Any) -> None:
    r"""From unknowns to the row of order parameters and the state ($\omega, \mu, \nu^2$, B).

    In step 0, R and $\hat R$ do not exist. `balanced` says that nothing distinguishes the classes:
    then B is zero, and its rounding must not live on, for steps may magnify it.
    """
    omega, mu, nu2 = about.omega, about.mu, about.nu2
    r, _ = scales(z, nu2)
    chi = math.exp(z[LOG_CHI])
    a = about.offset + z[A]
    m = mu * a + nu2 * z[ETA]
    rest = math.hypot(math.sqrt(nu2) * (a - mu * z[ETA]), r)
    norm = math.hypot(m, rest)
    row[0] = m
    row[1] = rest * rest
    row[2] = 0.0 if balanced else about.old_bias + z[BIAS]
    row[3] = chi
    row[4] = math.nan if about.first else omega * a
    row[5] = 1.0 / chi - about.ridge
    row[6] = (r / chi) ** 2
    row[7] = z[ETA] / chi
    row[8] = math.nan if about.first else (a - mu * z[ETA]) / (chi * omega)
    new[0] = norm
    new[1] = m / norm
    new[2] = (rest / norm) ** 2
    new[3] = row[2]
