"""The address holds the whole state, and nothing in an address is trusted."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftrain import Problem, Recipe
from selftrain.errors import InvalidInput
from selftrain.explorer.controls import NUMBERS
from selftrain.explorer.page_state import VIEWS, PageState, default_texts
from selftrain.explorer.presets import PRESETS


def test_the_defaults_are_a_problem_and_a_recipe():
    state = PageState()
    assert isinstance(state.problem, Problem)
    assert isinstance(state.recipe, Recipe)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_valid_and_survives_its_address(name):
    state = PRESETS[name].state()
    again = PageState.from_query("?" + state.query())
    assert (again.texts, again.view, again.t, again.pin) == (
        state.texts,
        state.view,
        state.t,
        state.pin,
    )
    assert again.remarks == ()
    assert again.problem == state.problem
    assert again.recipe == state.recipe
    pinned = PageState.from_query(state.pin)
    assert pinned.remarks == ()


def test_a_schedule_and_hard_labels_survive_the_address():
    state = PageState().with_values(
        {"steps": 3, "lambda_u": [0.1, 0.02, 0.003], "sharpness": math.inf, "fix_bias": False}
    )
    again = PageState.from_query(state.query())
    assert again.recipe.lambda_u == (0.1, 0.02, 0.003)
    assert again.recipe.sharpness == math.inf
    assert again.recipe.fix_bias is False


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("rho=2", "rho must be a number from 0.01 to 0.99, got 2"),
        ("rho=nan", "rho must be a number from 0.01 to 0.99, got nan"),
        ("steps=1e9", "steps"),
        ("steps=2.5", "steps"),
        ("loss=__import__('os')", "loss"),
        ("colour=red", "'colour'"),
        ("view=../../etc/passwd", "'view'"),
        ("lambda_u=" + "1," * 5000, "lambda_u"),
        ("classes=0.5,0.5", "classes must be three numbers"),
        ("classes=0.5,0.3,0.3", "classes must be three numbers"),
        ("classes=nan,0.5,0.5", "classes must be three numbers"),
        ("x" * 50_000, "too long"),
    ],
)
def test_what_is_wrong_in_an_address_is_named_and_left_out(query, word):
    state = PageState.from_query(query)
    assert any(word in remark for remark in state.remarks)
    assert state.texts == default_texts()
    assert state.view in VIEWS


@given(st.text(max_size=300))
def test_any_address_gives_a_valid_page(query):
    state = PageState.from_query(query)
    assert state.problem.steps >= 0


@given(
    st.dictionaries(
        st.text(max_size=9), st.one_of(st.none(), st.text(), st.floats(), st.booleans())
    )
)
def test_any_message_is_a_state_or_refused(data):
    PageState.from_store({"texts": data, "view": data.get("view"), "t": data.get("t")})
    if "texts" not in data:
        with pytest.raises(InvalidInput, match="state"):
            PageState.from_store(data)


@pytest.mark.parametrize("control", NUMBERS.values(), ids=NUMBERS)
def test_a_control_accepts_its_ends_and_refuses_what_lies_beyond(control):
    for end in (control.low, control.high):
        assert control.check(end) == end
    for beyond in (control.low - 1, control.high * 2 + 1):
        with pytest.raises(InvalidInput, match=control.name):
            control.check(beyond)
