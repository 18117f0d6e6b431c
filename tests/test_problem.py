"""Problem: what it accepts, what it refuses and in which words, and that it survives any file."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftrain import Problem
from selftrain.errors import InvalidInput
from selftrain.losses import Logistic, Squared

REFERENCE = {"alpha_l": 0.5, "alpha_u": 2.0, "rho": 0.4, "delta": 0.75**2, "steps": 3}


def refusal(**changes):
    with pytest.raises(InvalidInput) as caught:
        Problem(**{**REFERENCE, **changes})
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("rho", [0.0, 1.0, -0.1, 1.5, math.nan, math.inf, "half", None, True])
def test_rho_outside_the_open_interval(rho):
    assert refusal(rho=rho) == f"rho must be strictly between 0 and 1, got {rho!r}"


@pytest.mark.parametrize("field", ["alpha_l", "delta"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, "x", None, 10**400])
def test_amounts_and_variances_must_be_positive(field, value):
    message = refusal(**{field: value})
    assert message.startswith(f"{field} must be a finite number > 0 (from 1e-100 to 1e100), got ")


@pytest.mark.parametrize("field", ["alpha_u", "delta_u"])
def test_schedules_must_be_positive_at_every_step(field):
    assert refusal(**{field: 0.0}) == (
        f"{field} must be a finite number > 0 (from 1e-100 to 1e100), "
        "or a sequence with one entry per step, got 0.0"
    )
    assert refusal(**{field: [1.0, -2.0, 1.0]}) == (
        f"{field}[1] must be a finite number > 0 (from 1e-100 to 1e100), got -2.0"
    )
    assert refusal(**{field: [1.0, 2.0, math.nan]}).startswith(f"{field}[2] must be ")


def test_rho_u_must_be_a_share_at_every_step():
    assert refusal(rho_u=[0.5, 0.5, 1.0]).startswith("rho_u[2] must be strictly between 0 and 1")


@pytest.mark.parametrize("field", ["alpha_u", "rho_u", "delta_u"])
def test_sequence_of_the_wrong_length(field):
    message = refusal(**{field: [0.5, 0.5]})
    assert message == f"{field} = (0.5, 0.5): a sequence must have one entry per step: 3, not 2"


def test_matrix_is_not_a_schedule():
    assert refusal(alpha_u=np.ones((3, 2))).startswith("alpha_u[0] must be ")


@pytest.mark.parametrize("steps", [-1, 1.5, math.nan, math.inf, "many", 10**9, 10**400, None])
def test_steps_must_be_a_whole_number_that_fits(steps):
    message = refusal(steps=steps)
    assert message.startswith("steps must be a whole number from 0 to 10000000, got ")


def test_unknown_loss_suggests_the_near_one():
    assert refusal(loss="logistc") == (
        "loss = 'logistc': unknown loss; did you mean 'logistic'? known: logistic, squared"
    )


@pytest.mark.parametrize("loss", [Logistic, 3, None])
def test_loss_must_be_a_name_or_a_loss_object(loss):
    rule = "loss must be a name, or an object with the attributes of selftrain.losses.Loss, got "
    assert refusal(loss=loss).startswith(rule)


@pytest.mark.parametrize("test", ["train", (0.5,), (0.5, 1.0, 2.0), 0.3, np.ones(3)])
def test_test_mixture_of_the_wrong_form(test):
    message = 'test must be "labeled", "unlabeled" or a pair (rho, delta), got '
    assert refusal(test=test).startswith(message)


def test_test_mixture_out_of_range():
    assert refusal(test=(1.5, 1.0)).startswith("test rho must be ")
    assert refusal(test=(0.5, -1.0)).endswith(", got -1.0")


def test_no_batch_to_test_on_without_steps():
    assert refusal(steps=0, test="unlabeled").startswith('test must be "labeled" or a pair')


def test_default_test_mixture_is_the_last_batch_or_the_labelled_one():
    shifted = {**REFERENCE, "rho_u": [0.1, 0.2, 0.3], "delta_u": 2.0}
    assert Problem(**shifted).test_mixture == (0.3, 2.0)
    assert Problem(**shifted, test="labeled").test_mixture == (0.4, 0.75**2)
    assert Problem(**shifted, test=(0.25, 1.0)).test_mixture == (0.25, 1.0)
    assert Problem(**{**REFERENCE, "steps": 0}).test_mixture == (0.4, 0.75**2)


def test_batches_expand_scalars_and_keep_sequences():
    batches = Problem(**{**REFERENCE, "alpha_u": [1, 2, 3], "rho_u": 0.1}).unlabeled
    np.testing.assert_array_equal(batches.alpha, [1, 2, 3])
    np.testing.assert_array_equal(batches.rho, [0.1, 0.1, 0.1])
    np.testing.assert_array_equal(batches.delta, [0.5625, 0.5625, 0.5625])


@pytest.mark.parametrize("kind", [tuple, np.array, pd.Series])
def test_any_kind_of_sequence_is_stored_as_floats(kind):
    problem = Problem(**{**REFERENCE, "alpha_u": kind([1, 2, 3])})
    assert problem.alpha_u == (1.0, 2.0, 3.0)
    assert all(type(entry) is float for entry in problem.alpha_u)


@pytest.mark.parametrize("half", [np.float32(0.5), np.array(0.5), Fraction(1, 2)])
def test_any_kind_of_number_is_stored_as_float(half):
    problem = Problem(**{**REFERENCE, "rho": half, "steps": np.int64(3)})
    assert (type(problem.rho), problem.rho) == (float, 0.5)
    assert (type(problem.steps), problem.steps) == (int, 3)


def test_frozen_and_hashable():
    problem = Problem(**REFERENCE)
    with pytest.raises(AttributeError):
        problem.rho = 0.3
    assert {problem: 1}[Problem(**REFERENCE)] == 1


def test_replace_validates_and_knows_its_fields():
    problem = Problem(**REFERENCE)
    assert problem.replace(rho=0.2).rho == 0.2
    assert problem.rho == 0.4
    with pytest.raises(InvalidInput, match=r"^rho must be .* got 2"):
        problem.replace(rho=2)
    with pytest.raises(InvalidInput, match="unknown key; did you mean 'alpha_l'"):
        problem.replace(alpha_ll=2)


def test_repr_is_readable():
    assert repr(Problem(**REFERENCE)) == (
        "Problem(alpha_l=0.5, alpha_u=2, rho=0.4, delta=0.5625, steps=3, loss='logistic')"
    )
    shown = repr(
        Problem(**{**REFERENCE, "steps": 9, "alpha_u": range(1, 10), "loss": Squared()}, rho_u=0.5)
    )
    assert "alpha_u=(1, 2, 3, ..., 9; 9 steps)" in shown
    assert "loss='squared'" in shown
    assert "rho_u=0.5" in shown


def test_missing_and_unknown_keys_of_a_dictionary():
    with pytest.raises(InvalidInput, match=r"missing: rho, delta$"):
        Problem.from_dict({"alpha_l": 0.5, "alpha_u": 1.0, "steps": 3})
    with pytest.raises(InvalidInput, match=r"^alhpa_l = 0.5: unknown key; did you mean 'alpha_l'?"):
        Problem.from_dict({**REFERENCE, "alhpa_l": 0.5})


@pytest.mark.parametrize("text", ["{", "[1]", "3"])
def test_text_that_is_no_json_object(text):
    with pytest.raises(InvalidInput, match=r"not JSON|a JSON object is expected"):
        Problem.from_json(text)


def test_text_that_is_no_toml():
    with pytest.raises(InvalidInput, match=r"not TOML: .*line 1"):
        Problem.from_toml("alpha_l 0.5")


positive = st.floats(min_value=1e-100, max_value=1e100)
share = st.floats(min_value=0, max_value=1, exclude_min=True, exclude_max=True)


@st.composite
def problems(draw):
    steps = draw(st.integers(1, 5))

    def each(values):
        return st.one_of(values, st.lists(values, min_size=steps, max_size=steps))

    return Problem(
        alpha_l=draw(positive),
        alpha_u=draw(each(positive)),
        rho=draw(share),
        delta=draw(positive),
        steps=steps,
        loss=draw(st.sampled_from(["logistic", "squared"])),
        rho_u=draw(st.none() | each(share)),
        delta_u=draw(st.none() | each(positive)),
        test=draw(
            st.none() | st.sampled_from(["labeled", "unlabeled"]) | st.tuples(share, positive)
        ),
    )


@given(problems())
def test_round_trips_are_exact(problem):
    assert Problem.from_dict(problem.to_dict()) == problem
    assert Problem.from_json(problem.to_json()) == problem
    assert Problem.from_toml(problem.to_toml()) == problem
