"""Nothing runs away: limits of time, requests that are superseded, jobs that are cancelled."""

import sys
import threading
import time
from multiprocessing.connection import wait

import numpy as np
import pytest

from selftrain import solve
from selftrain.explorer.jobs import JobBoard
from selftrain.explorer.page_state import PageState
from selftrain.explorer.presets import PRESETS
from selftrain.explorer.tasks import TASKS
from selftrain.explorer.workers import Busy, Superseded, TooLong, Workers


def state_data(**values):
    state = PRESETS["headline"].state().with_values(values)
    return {"texts": state.texts, "view": "error", "t": -1, "pin": ""}


def finished(board, job, seconds=120.0):
    deadline = time.monotonic() + seconds
    while not job.ended and time.monotonic() < deadline:
        time.sleep(0.05)
    return board.get(job.id)


def messages_of(kind, data):
    """Return what a task sends."""
    messages = []
    TASKS[kind](data, messages.append)
    return messages


@pytest.fixture(scope="module")
def workers():
    workers = Workers(count=1, seconds=30.0, patience=120.0)
    yield workers
    workers.close()


def test_an_answer_comes_from_another_process(workers):
    shown = workers.ask("answer", state_data())
    assert shown["sentences"]


def test_an_older_request_of_a_page_is_dropped(workers):
    workers.ask("answer", state_data(), "page", 7)
    with pytest.raises(Superseded):
        workers.ask("answer", state_data(), "page", 6)
    workers.ask("answer", state_data(), "another page", 1)


def test_ten_visitors_at_once_are_all_answered(workers):
    answers = {}

    def visit(i):
        answers[i] = workers.ask("answer", state_data(rho=0.2 + 0.02 * i), f"visitor {i}", 1)

    visitors = [threading.Thread(target=visit, args=(i,)) for i in range(10)]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join(60)
    assert len({tuple(shown["sentences"]) for shown in answers.values()}) == 10


def test_an_answer_that_takes_too_long_ends_its_process_and_the_next_one_is_served():
    workers = Workers(count=1, seconds=1e-6, patience=120.0)
    try:
        with pytest.raises(TooLong):
            workers.ask("answer", state_data(steps=200))
        workers.seconds = 30.0
        assert "figure" in workers.ask("answer", state_data())
    finally:
        workers.close()
    with pytest.raises(Busy):
        workers.ask("answer", state_data())


def test_jobs_report_finish_and_can_be_cancelled():
    board = JobBoard()
    few = {"state": state_data(steps=2), "features": 64, "seeds": 3}
    done = finished(board, board.start("simulate", few))
    assert done.status == "done", done.progress
    assert len(done.result["simulated"]["error"]) == 3
    long = board.start("simulate", {"state": state_data(), "features": 2**17, "seeds": 32})
    while long.status == "waiting" or long.process is None:
        time.sleep(0.02)
    board.cancel(long.id)
    # not `join`: the thread that follows the job joins too, and of two that reap a process one is
    # told that it is alive
    assert wait([long.process.sentinel], 10)
    assert board.get(long.id).status == "cancelled"


@pytest.mark.parametrize(
    ("kind", "data", "word"),
    [
        (
            "simulate",
            {"features": 2**21, "seeds": 1},
            "from 2 to 1048576, got 2097152",
        ),
        (
            "simulate",
            {"features": "all", "seeds": 1},
            "from 2 to 1048576, got 'all'",
        ),
        ("simulate", {"features": 2**20, "seeds": 32}, "features x seeds x steps"),
        (
            "optimize",
            {"search": "everything"},
            "search must be one of constants,",
        ),
    ],
)
def test_a_job_that_asks_for_too_much_is_refused_in_words(kind, data, word):
    board = JobBoard()
    job = finished(board, board.start(kind, {"state": state_data(), **data}))
    assert job.status == "failed"
    assert word in job.progress


def test_a_job_ends_when_its_time_is_over():
    board = JobBoard(seconds=0.5)
    job = finished(
        board, board.start("simulate", {"state": state_data(), "features": 2**17, "seeds": 32})
    )
    assert job.status == "failed"
    assert "0.5 s" in job.progress


def test_a_search_sets_the_controls():
    board = JobBoard()
    job = finished(
        board,
        board.start("optimize", {"state": state_data(rho=0.5, steps=4), "search": "constants"}),
    )
    assert job.status == "done", job.progress
    found = PageState.from_store(job.result)
    assert found.recipe.annealing == 0.0223
    assert found.recipe.fix_bias
    assert 1e-8 <= found.recipe.lambda_u <= 0.1


IMBALANCED = {"rho": 0.2, "alpha_l": 0.5, "alpha_u": 2, "delta": 0.5625}


@pytest.mark.parametrize(
    ("search", "values"),
    [
        ("constants", {"steps": 16}),
        ("constants", {"steps": 4, "sharpness": 1.5, "lambda_u": 0.02}),
        ("constants", {"steps": 4, "threshold": 0.3, "annealing": 0.2, "lambda_u": 0.1}),
        ("constants", {"steps": 3, "lambda_u": "0.02,0.01,0.005"}),
        ("constants", {"steps": 4, "lambda_u": 0.5}),
        ("constants", {"steps": 4, "sharpness": "inf"}),
        ("schedule", {"steps": 8}),
        ("schedule", {"steps": 3, "sharpness": 1.3, "lambda_u": "0.02,0.01,0.005"}),
        ("heuristics", {"steps": 16, "annealing": 0, "fix_bias": False, "lambda_u": 0.01}),
        ("heuristics", {"steps": 4, "sharpness": "inf", "annealing": 0}),
    ],
)
def test_a_search_never_shows_a_worse_recipe_than_before(search, values):
    """It starts from what is shown, keeps what it does not vary, and replaces it only by something
    better.
    """
    data = state_data(**IMBALANCED | values)
    before = PageState.from_store(data)
    error = solve(before.problem, before.recipe).error[-1]
    last = messages_of("optimize", {"state": data, "search": search})[-1]
    after = PageState.from_store(last) if "texts" in last else before
    assert solve(after.problem, after.recipe).error[-1] <= error
    if search != "heuristics":
        for name in ("annealing", "sharpness", "threshold", "fix_bias"):
            assert after.texts[name] == before.texts[name]


def test_an_optimum_that_is_shown_stays():
    data = state_data(**IMBALANCED | {"steps": 4})
    for _ in range(2):
        last = messages_of("optimize", {"state": data, "search": "constants"})[-1]
        data = data | {"texts": last.get("texts", data["texts"])}
    assert "the recipe shown stays" in last["progress"]


@pytest.mark.parametrize("search", ["schedule", "heuristics"])
def test_what_a_search_finds_is_accepted_by_the_controls(search):
    """Here the best ridges without heuristics are as small as they may be."""
    messages = messages_of("optimize", {"state": state_data(steps=2), "search": search})
    found = PageState.from_store(messages[-1])
    error = solve(found.problem, found.recipe).error[-1]
    assert f"best error {error:.5f}" in messages[-1]["progress"]


def test_three_classes_are_simulated_and_searched():
    """Their simulated error is that of the theory."""
    state = PRESETS["three-classes"].state().with_values({"steps": 2})
    run = solve(state.problem, state.recipe)
    sent = {"state": state.stored(), "features": 400, "seeds": 4}
    seen = [one for one in messages_of("simulate", sent) if "simulated" in one][-1]["simulated"]
    errors = np.array(seen["error"])
    assert errors.shape == (4, 3)
    np.testing.assert_allclose(errors.mean(axis=0), run.error, atol=2 * errors.std(axis=0).max())
    last = messages_of("optimize", {"state": state.stored(), "search": "constants"})[-1]
    after = PageState.from_store(last) if "texts" in last else state
    assert solve(after.problem, after.recipe).error[-1] <= run.error[-1]


def test_a_job_that_needs_too_much_memory_ends_in_words():
    """A million features need more than is left of 400 MB."""
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux limits the memory of a process")
    board = JobBoard(memory=400 * 2**20)
    data = {"state": state_data(steps=2), "features": 2**20, "seeds": 1}
    job = finished(board, board.start("simulate", data))
    assert job.status == "failed"
    assert "more memory than the 0.39 GB" in job.progress, job.progress
