"""The one alias for arrays of real numbers, for type annotations everywhere."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array"]

Array = NDArray[np.float64]
