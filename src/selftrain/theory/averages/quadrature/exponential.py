r"""The exponential without branches: in loops over arrays compilers make vector code of it.

$e^x = 2^k e^r$ with k the integer nearest to $x/\ln 2$, so $|r| \le \ln(2)/2$, and the Taylor
series of $e^r - 1$. The power of two is made by moving bits. `exp(x) - 1` comes with it, to full
relative accuracy.
"""

from __future__ import annotations

import math
from typing import Any

from numba import types
from numba.extending import intrinsic, overload

from ....runtime.kernels import kernel

SHIFT = 1.5 * 2.0**52
"""Added to a number, it leaves the nearest integer in the last bits."""

LOG2_E = 1.0 / math.log(2.0)
LN2_HIGH = 0.6931471803691238
LN2_LOW = 1.9082149292705877e-10
"""ln 2 in two parts; k times the first is exact."""

LARGEST = 690.0
"""Arguments are clipped to this size: their exponentials are beyond anything an average can tell
from zero or infinity.
"""

C2, C3, C4, C5, C6, C7 = (1.0 / math.factorial(n) for n in range(2, 8))
C8, C9, C10, C11, C12, C13 = (1.0 / math.factorial(n) for n in range(8, 14))


def power_of_two(shifted: float) -> float:
    """$2^k$ for `shifted` = k + SHIFT, k between -1022 and 1023."""
    return math.ldexp(1.0, int(shifted - SHIFT))


@intrinsic
def _power_by_bits(typing: Any, shifted: Any) -> Any:
    """The last bits of `shifted`, moved to where a floating-point number has its exponent."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        integer = context.get_value_type(types.int64)
        bits = builder.shl(builder.bitcast(arguments[0], integer), integer(52))
        one = integer(1023 << 52)
        return builder.bitcast(builder.add(bits, one), context.get_value_type(types.float64))

    return types.float64(types.float64), code


@overload(power_of_two)
def _compiled_power_of_two(shifted: Any) -> Any:
    def compiled(shifted: Any) -> Any:
        return _power_by_bits(shifted)  # type: ignore[call-arg]  # numba gives the first

    return compiled


@kernel(error_model="numpy", fastmath={"contract"}, forceinline=True)
def exponentials(x: float) -> tuple[float, float]:
    """exp(x) and exp(x) - 1, both to the last digits; x is clipped to `LARGEST`."""
    x = min(max(x, -LARGEST), LARGEST)
    shifted = x * LOG2_E + SHIFT
    k = shifted - SHIFT
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    high = C8 + r * (C9 + r * (C10 + r * (C11 + r * (C12 + r * C13))))
    tail = C2 + r * (C3 + r * (C4 + r * (C5 + r * (C6 + r * (C7 + r * high)))))
    less_one = r + r * r * tail
    power = power_of_two(shifted)
    return power + power * less_one, power * less_one + (power - 1.0)
