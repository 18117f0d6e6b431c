"""Theory, simulation and practice of self-training linear classifiers.

>>> from selftrain import Problem, Recipe, solve
>>> problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=16)
>>> run = solve(problem, Recipe(lambda_l=0.05, lambda_u=0.05))
>>> round(float(run.error[0]), 6)
0.193827
"""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

# The stub file `__init__.pyi` is the only list of public names, for type checkers and for this
# module. A name is imported on first use, so that the command line starts fast.
_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_HOMES = {name: home for home, name in re.findall(r"^from (\.[\w.]+) import (\w+) as", _STUB, re.M)}
_MODULES = re.findall(r"^from \. import (\w+) as", _STUB, re.M)

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name], __name__), name)
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name == "__version__":
        return import_module("importlib.metadata").version("selftrain")
    raise AttributeError(f"module 'selftrain' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_MODULES]
