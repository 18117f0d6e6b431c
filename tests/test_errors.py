"""Errors say what is wrong in one line, can be caught by family, and survive a process border."""

import pickle

import pytest

import selftrain
from selftrain import errors
from selftrain.errors import (
    ConvergenceError,
    EmptySelection,
    InvalidInput,
    SelfTrainError,
    StageError,
    StateOverflow,
    nearest,
)


def test_invalid_input_names_field_value_and_what_is_accepted():
    error = InvalidInput("rho", 1.5, "a number strictly between 0 and 1 is accepted")
    assert str(error) == "rho = 1.5: a number strictly between 0 and 1 is accepted"
    assert isinstance(error, ValueError)
    assert isinstance(error, SelfTrainError)


def test_a_rule_reads_as_a_sentence():
    error = InvalidInput("rho", 1.5, "must be strictly between 0 and 1")
    assert str(error) == "rho must be strictly between 0 and 1, got 1.5"


def test_message_stays_one_short_line_for_long_values():
    message = str(InvalidInput("alpha_u", "a\nb" + "x" * 500, "a number is accepted"))
    assert "\n" not in message
    assert len(message) < 130


@pytest.mark.parametrize("kind", [StageError, ConvergenceError, EmptySelection, StateOverflow])
def test_stage_error_tells_step_state_and_residual(kind):
    error = kind(7, "no start converged", {"m": 0.5, "q": 2.0}, 3e-4)
    assert isinstance(error, SelfTrainError)
    assert str(error) == "step 7: no start converged (residual 0.0003; state m=0.5, q=2)"
    assert (error.step, error.state, error.residual) == (7, {"m": 0.5, "q": 2.0}, 3e-4)


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput("rho", 2.0, "less"),
        ConvergenceError(3, "no start converged", {"m": 0.5}, 1e-3),
    ],
)
def test_errors_survive_pickling(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)


def test_nearest_suggests_only_what_is_near():
    assert nearest("lambda_uu", ["lambda_u", "rho"]).startswith("did you mean 'lambda_u'? ")
    assert nearest("zzz", ["lambda_u", "rho"]) == "known: lambda_u, rho"


def test_every_error_of_the_package_is_in_the_module_of_errors() -> None:
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type)}
    kinds = {kind for kind in kinds if issubclass(kind, SelfTrainError)}
    assert {kind.__name__ for kind in kinds} <= set(errors.__all__)
    assert {"SeedError", "StoreError", "Unreachable"} <= set(errors.__all__)
    assert selftrain.SelfTrainError is SelfTrainError
