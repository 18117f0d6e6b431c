"""Recipe: what it accepts, what it refuses and in which words, and that it survives any file."""

import inspect
import json
import math
import tomllib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftrain import Problem, Recipe
from selftrain.errors import InvalidInput


def refusal(**values):
    with pytest.raises(InvalidInput) as caught:
        Recipe(**values)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("value", [0, 0.0, -0.1, math.nan, math.inf, "x"])
def test_lambda_u_must_be_positive_and_the_reason_is_told(value):
    message = refusal(lambda_u=value)
    assert message.startswith("lambda_u must be a finite number > 0")
    assert message.endswith(f", got {value!r}")
    assert "a step changes nothing" in message


def test_lambda_u_of_one_step():
    assert refusal(lambda_u=[0.1, 0.0]).startswith("lambda_u[1] must be a finite number > 0")


@pytest.mark.parametrize("field", ["lambda_l", "threshold", "annealing"])
@pytest.mark.parametrize("value", [-1e-9, math.nan, math.inf, "x", None])
def test_quantities_that_may_be_zero_but_not_negative(field, value):
    message = refusal(**{field: value})
    assert message.startswith(f"{field} must be a finite number >= 0")
    assert message.endswith(f", got {value!r}")


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, "sharp", -math.inf])
def test_sharpness_must_be_positive(value):
    message = refusal(sharpness=value)
    assert message.startswith("sharpness must be a number > 0, inf for hard")
    assert message.endswith(f", got {value!r}")


@pytest.mark.parametrize("value", [0, 1, "yes", None])
def test_fix_bias_is_a_truth_value(value):
    assert refusal(fix_bias=value) == f"fix_bias must be True or False, got {value!r}"


def test_unknown_labeler_suggests_the_near_one():
    assert refusal(labeler="sof") == (
        "labeler = 'sof': unknown labeler; did you mean 'soft'? known: hard, soft"
    )


def test_lambda_l_is_one_number():
    assert refusal(lambda_l=[0.1, 0.2]).endswith(", got [0.1, 0.2]")


def test_sharpness_of_step_t_is_annealed_by_one_plus_a_t():
    values = Recipe(sharpness=2.0, annealing=0.5).at_steps(3)
    np.testing.assert_allclose(values.sharpness, [3.0, 4.0, 5.0], rtol=1e-15)


def test_annealing_may_depend_on_the_step():
    values = Recipe(annealing=[0.0, 1.0, 2.0]).at_steps(3)
    np.testing.assert_allclose(values.sharpness, [1.0, 3.0, 7.0], rtol=1e-15)


def test_hard_labels_stay_hard_when_annealed():
    assert np.isinf(Recipe(sharpness="inf", annealing=0.5).at_steps(4).sharpness).all()


@pytest.mark.parametrize("field", ["lambda_u", "threshold", "sharpness", "annealing"])
def test_sequence_of_the_wrong_length(field):
    recipe = Recipe(**{field: [0.5, 0.5]})
    with pytest.raises(InvalidInput) as caught:
        recipe.at_steps(3)
    assert str(caught.value) == (
        f"{field} = (0.5, 0.5): a sequence must have one entry per step: 3, not 2"
    )


def test_infinity_has_a_spelling_in_every_format():
    recipe = Recipe(sharpness=[1.0, math.inf])
    assert json.loads(recipe.to_json())["sharpness"] == [1.0, "inf"]
    assert tomllib.loads(recipe.to_toml())["sharpness"] == [1.0, math.inf]


def test_repr_is_readable():
    assert repr(Recipe(lambda_u=[0.1, 0.05], sharpness=math.inf)) == (
        "Recipe(lambda_l=0.05, lambda_u=(0.1, 0.05), threshold=0, sharpness=inf, annealing=0, "
        "fix_bias=False, labeler='soft')"
    )


positive = st.floats(min_value=1e-100, max_value=1e100)
not_negative = positive | st.just(0.0)
sharpness = positive | st.just(math.inf)


@st.composite
def recipes(draw):
    def each(values):
        return values | st.lists(values, min_size=1, max_size=5)

    return Recipe(
        lambda_l=draw(not_negative),
        lambda_u=draw(each(positive)),
        threshold=draw(each(not_negative)),
        sharpness=draw(each(sharpness)),
        annealing=draw(each(not_negative)),
        fix_bias=draw(st.booleans()),
        labeler=draw(st.sampled_from(["soft", "hard"])),
    )


@given(recipes())
def test_round_trips_are_exact(recipe):
    assert Recipe.from_dict(recipe.to_dict()) == recipe
    assert Recipe.from_json(recipe.to_json()) == recipe
    assert Recipe.from_toml(recipe.to_toml()) == recipe


def test_help_and_completion_see_the_fields() -> None:
    """Not the check of names that comes before them."""
    for word in (Problem, Recipe):
        shown = inspect.signature(word)
        assert list(shown.parameters) == list(word.__dataclass_fields__)
    assert inspect.signature(Recipe).parameters["lambda_u"].default == 0.05
