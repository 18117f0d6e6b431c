"""The words for which rows a step uses: what they mean, what is refused, what survives a round
trip.
"""

import numpy as np
import pytest

from selftrain import Problem, bayes_error
from selftrain.errors import InvalidInput

WORDS = {"alpha_l": 0.5, "alpha_u": 2.0, "rho": 0.4, "delta": 0.5, "steps": 3}


def test_groups_of_a_batch_that_returns() -> None:
    problem = Problem(**WORDS, batches=("a", "b", "a"), keep_labeled=(0.0, 1.0, 0.5))
    labeled, first, second = problem.row_groups
    assert labeled.labeled
    assert labeled.weights == (1.0, 0.0, 1.0, 0.5)
    assert (first.name, first.alpha, first.steps) == ("a", 2.0, (1, 3))
    assert second.steps == (2,)
    assert problem.new_rows.tolist() == [2.0, 2.0, 0.0]


def test_parts_of_a_pool_share_the_rows_of_a_step() -> None:
    problem = Problem(**WORDS, batches=("a+b", "b + c", "c+a"))
    assert [group.alpha for group in problem.row_groups[1:]] == [1.0, 1.0, 1.0]
    assert [group.steps for group in problem.row_groups[1:]] == [(1, 3), (1, 2), (2, 3)]
    assert problem.new_rows.tolist() == [2.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, True),
        ({"batches": ("a", "b", "c")}, True),
        ({"batches": "reused"}, False),
        ({"batches": "reused", "steps": 1}, True),
        ({"batches": ("a", "b", "b")}, False),
        ({"keep_labeled": 0.3}, False),
        ({"keep_labeled": (0, 0, 1)}, False),
        ({"keep_labeled": 1, "steps": 0}, True),
    ],
)
def test_memoryless(fields: dict, expected: bool) -> None:
    assert Problem(**{**WORDS, **fields}).memoryless is expected


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"batches": "fresher"}, "batches = 'fresher'"),
        ({"batches": 3}, "batches = 3"),
        ({"batches": ("a", "b")}, "one name per step: 3, not 2"),
        ({"batches": ("a", "", "b")}, "batches[1] = ''"),
        ({"batches": ("a", 1, "b")}, "batches[1] = 1"),
        ({"batches": ("a", "a+a", "b")}, "once per step"),
        ({"batches": ("a", "labeled", "b")}, "taken"),
        ({"batches": "reused", "alpha_u": (1, 1, 2)}, "alpha_u = 2.0: rows that are used again"),
        ({"batches": ("a", "b", "a"), "rho_u": (0.1, 0.2, 0.3)}, "rho_u = 0.3"),
        ({"batches": ("a", "b", "a+b")}, "parts of a step share its alpha_u equally"),
        ({"keep_labeled": -1.0}, "keep_labeled = -1.0"),
        ({"keep_labeled": float("inf")}, "keep_labeled = inf"),
        ({"keep_labeled": (1.0, 1.0)}, "keep_labeled"),
    ],
)
def test_refused(fields: dict, message: str) -> None:
    with pytest.raises(InvalidInput) as told:
        Problem(**{**WORDS, **fields})
    assert message in str(told.value)


def test_round_trips_and_silence_at_the_default() -> None:
    problem = Problem(**WORDS, batches=("a", "b", "a"), keep_labeled=0.5)
    assert Problem.from_json(problem.to_json()) == problem
    assert Problem.from_toml(problem.to_toml()) == problem
    assert "batches=('a', 'b', 'a'), keep_labeled=0.5" in repr(problem)
    assert "batches" not in Problem(**WORDS).to_dict()


def test_limits_count_every_row_once() -> None:
    """Rows seen again bring no information: the limit of a reused batch is that of one step."""
    once = bayes_error(Problem(**{**WORDS, "steps": 1}))
    again = bayes_error(Problem(**WORDS, batches="reused", keep_labeled=1.0))
    assert np.isclose(again.semi_supervised, once.semi_supervised, rtol=1e-14)
    assert np.isclose(again.all_labeled, once.all_labeled, rtol=1e-14)
