"""Faults for the tests to notice: which there are, and that they change the running program."""

from pathlib import Path

import pytest

from benchmarks.mutation.faults import faults, put
from selftrain import observables

SOURCE = "LIMIT = 2.0\n\n\ndef f(x: int = 1) -> float:\n    return x + LIMIT if x < 3 else -x\n"


def test_every_operator_number_and_branch_has_a_fault(tmp_path):
    file = tmp_path / "made.py"
    file.write_text(SOURCE)
    found = {(fault.owner, fault.before, fault.after) for fault in faults(file)}
    assert ("LIMIT", "2.0", "4.0") in found
    assert ("f", "x + LIMIT", "x - LIMIT") in found
    assert ("f", "x < 3", "x >= 3") in found
    assert ("f", "-x", "+x") in found
    assert all(before != "1" for _, before, _ in found), "defaults of arguments are not formulas"


def test_a_fault_changes_the_running_function():
    file = Path(observables.__file__)
    fault = next(
        one
        for one in faults(file)
        if one.owner == "generalization_error" and one.before == "1 - rho"
    )
    original = observables.generalization_error.__code__
    arguments = (1.0, 2.0, 0.3, 0.4, 0.5)
    right = observables.generalization_error(*arguments)
    try:
        put(fault)
        assert observables.generalization_error(*arguments) != pytest.approx(right)
    finally:
        observables.generalization_error.__code__ = original
    assert observables.generalization_error(*arguments) == right
