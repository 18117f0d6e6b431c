"""Tasks of a script whose state follows from one number, in every way a script can hold it.

    python identity_script.py STORES NUMBER

prints what `sweep` returns for each of them, by name.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import lru_cache, partial, wraps
from typing import Any

import numpy as np
from numba import njit

from selftrain import Recipe, sweep

K = int(sys.argv[2]) if __name__ == "__main__" else 1
ARRAY = np.full(3, float(K))


def from_array(x: float) -> float:
    return ARRAY[1] * x


@dataclass
class Setting:
    scale: float


SETTING = Setting(K)


def from_dataclass(x: float) -> float:
    return SETTING.scale * x


class Scaler:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    def times(self, x: float) -> float:
        return self.scale * x

    def __call__(self, x: float) -> float:
        return self.times(x)


SCALER = Scaler(K)


def from_instance(x: float) -> float:
    return SCALER.times(x)


RECIPE = Recipe(lambda_l=float(K))


def from_recipe(x: float) -> float:
    return RECIPE.lambda_l * x


def product(x: float, y: float) -> float:
    return x * y


PRODUCT = partial(product, K)


def from_partial(x: float) -> float:
    return PRODUCT(x)


def from_default(x: float, scale: float = K) -> float:
    return scale * x


@lru_cache
def cached(x: float) -> float:
    return K * x


def from_cached_helper(x: float) -> float:
    return cached(x)


@njit
def compiled(x: float) -> float:
    return K * x


def from_compiled_helper(x: float) -> float:
    return compiled(x)


def scaled(function: Any, scale: float) -> Any:
    @wraps(function)
    def inner(x: float) -> float:
        return scale * function(x)

    return inner


def same(x: float) -> float:
    return x


ONCE, THRICE = scaled(same, K), scaled(same, 3)


def from_closures_of_one_name(x: float) -> float:
    return ONCE(x) + THRICE(x) - 3 * x


def helper(x: float) -> float:
    return ARRAY[0] * x


class Calling:
    def compute(self, x: float) -> float:
        return helper(x)


def from_function_of_a_method(x: float) -> float:
    return Calling().compute(x)


def from_nested_code(x: float) -> float:
    def outer() -> float:
        def inner() -> list[list[float]]:
            return [[K * x for _ in range(1)] for _ in range(1)]

        return inner()[0][0]

    return outer()


# fmt: off
one, many = (lambda x: 1 * x), (lambda x: 20 * x)  # the source of both is this line
# fmt: on

TASKS = {
    "array": from_array,
    "dataclass": from_dataclass,
    "instance": from_instance,
    "recipe": from_recipe,
    "partial": from_partial,
    "default": from_default,
    "cached helper": from_cached_helper,
    "compiled helper": from_compiled_helper,
    "cached": cached,
    "compiled": compiled,
    "closures": from_closures_of_one_name,
    "method calls": from_function_of_a_method,
    "nested": from_nested_code,
    "lambdas": one if K == 1 else many,
    "task is partial": partial(product, y=K),
    "task is object": Scaler(K),
    "bound method": Scaler(K).times,
    "closure": scaled(same, K),
}

if __name__ == "__main__":
    found = {}
    for name, task in TASKS.items():
        store = f"{sys.argv[1]}/{name}.db"
        data = sweep(over={"x": [1.0]}, task=task, store=store, workers=0, progress=False)
        assert data["status"].values.tolist() == [0], (name, data["reason"].values)
        found[name] = float(data["value"].values[0])
    print(json.dumps(found))
