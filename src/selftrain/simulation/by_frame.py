"""Placeholder of the frame engine."""

from __future__ import annotations

from typing import Any

from .record import Record
from .stages import Plan


def supports(plan: Plan) -> bool:
    return False


def run_seed(plan: Plan, seed: int, **options: Any) -> Record | None:
    raise NotImplementedError
