"""A visitor's own table: a plan, a predicted curve, real rows on top; bad tables are refused in
words.
"""

import base64
import tempfile

import pytest

from selftrain import SelfTrainError
from selftrain.explorer.own_data import own_data, own_shape
from selftrain.explorer.page_state import PageState


def sent(text, target="kind"):
    contents = "data:text/csv;base64," + base64.b64encode(text.encode()).decode()
    return {"contents": contents, "target": target, "state": {"texts": PageState().texts}}


def test_a_table_gives_a_plan_and_a_curve_with_real_rows_on_top(rows_csv):
    messages: list[dict] = []
    own_data(sent(rows_csv), messages.append)
    answer = next(message["answer"] for message in messages if "answer" in message)
    figure = next(message["own"] for message in messages if "own" in message)
    assert answer
    names = [trace["name"] for trace in figure["data"]]
    assert "theory with the covariance of the rows" in names
    assert "real rows, mean" in names
    theory = figure["data"][names.index("theory with the covariance of the rows")]["y"]
    real = figure["data"][names.index("real rows, mean")]["y"]
    assert len(theory) == len(real)
    assert abs(theory[0] - real[0]) < 0.1


@pytest.mark.parametrize(
    ("data", "word"),
    [
        ({"contents": None, "target": "y"}, "CSV"),
        ({"contents": "data:;base64,@@@", "target": "y"}, "CSV"),
        (sent("a,b\n1,2\n", target="c"), "no such column"),
        (sent("", target="kind"), "line of names"),
    ],
)
def test_a_bad_table_is_refused_in_words(data, word):
    with pytest.raises(SelfTrainError, match=word):
        own_data({"state": {"texts": PageState().texts}, **data}, print)


@pytest.mark.parametrize("job", [own_data, own_shape])
@pytest.mark.parametrize(
    ("text", "filename", "shown"),
    [
        ("", "my table.csv", "'my table.csv'"),
        ("", "C:\\data\\leer.csv", "'leer.csv'"),
        ("", "../../etc/passwd", "'passwd'"),
        ("", None, "'rows.csv'"),
    ],
)
def test_a_message_names_the_file_of_the_visitor(job, text, filename, shown):
    messages: list[dict] = []
    try:
        job(sent(text) | {"filename": filename}, messages.append)
        said = str(messages)
    except SelfTrainError as error:
        said = str(error)
    assert shown in said
    assert tempfile.gettempdir() not in said


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (",".join(f"x{i}" for i in range(3000)) + ",kind\n", "at most 2000 columns"),
        ("a,kind\n" + "1,x\n" * 1_400_000, "at most 5 MB"),
    ],
)
def test_a_table_that_is_too_large_is_rejected_before_it_is_read(text, word):
    with pytest.raises(SelfTrainError, match=word):
        own_data(sent(text), print)
