"""Hostile requests to every callback of the page: an answer or a refusal, never a stack trace."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.page.browser import callback_request
from selftrain.explorer.answers import answer, table
from selftrain.explorer.callbacks import BROKEN, FILES, JOBS
from selftrain.explorer.jobs import JobBoard, VisitorJob
from selftrain.explorer.page_state import PageState
from selftrain.explorer.server import LARGEST_REQUEST, create_app

VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.floats(),
        st.text(max_size=20),
        st.sampled_from(["__import__('os')", "<script>", "../../etc/passwd", 10**400, -1, "1e999"]),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
STATES = st.builds(
    lambda texts, more: {"texts": PageState().texts | {"steps": "1"} | texts, **more},
    st.dictionaries(st.sampled_from(list(PageState().texts)), VALUES, max_size=3),
    st.dictionaries(
        st.sampled_from(["view", "t", "pin", "dark", "size", "simulated", "page", "number"]), VALUES
    ),
)


SENT = {
    f"{store}.data": VALUES
    | st.fixed_dictionaries({"button": st.sampled_from(buttons), "state": STATES | VALUES})
    for store, buttons in (("job-asked", list(JOBS)), ("file-asked", FILES))
}
"""What the page sends when one of its buttons is pressed, bent."""


class Here:
    """Workers without processes."""

    def ask(self, kind, data, page="", number=0):
        return {"answer": answer, "table": table}[kind](data)


class Resting(JobBoard):
    """A board that starts nothing."""

    def start(self, kind, data):
        return VisitorJob(kind, data, status="failed", progress="not here")


@pytest.fixture(scope="module")
def client():
    return create_app(Here(), Resting()).server.test_client()


@pytest.fixture(scope="module")
def dependencies(client):
    known = client.get("/_dash-dependencies").get_json()
    return [one for one in known if one["clientside_function"] is None]


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.data())
def test_no_request_gets_a_stack_trace(client, dependencies, data):
    dependency = data.draw(st.sampled_from(dependencies))
    members = [*dependency["inputs"], *dependency["state"]]
    names = [f"{one['id']}.{one['property']}" for one in members]
    values = {name: data.draw(SENT.get(name, VALUES)) for name in names}
    sent = json.dumps(callback_request(dependency, values))
    answered = client.post("/_dash-update-component", data=sent, content_type="application/json")
    assert answered.status_code in (200, 204)
    assert b"Traceback" not in answered.data


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(STATES | VALUES)
def test_any_state_gets_a_picture_or_a_sentence(client, state):
    shown = client.post("/answer", json=state)
    assert shown.status_code == 200
    answer = json.loads(shown.data, parse_constant=pytest.fail)
    assert ("figure" in answer) != ("fault" in answer)
    assert "Traceback" not in shown.text
    assert answer.get("fault") != BROKEN


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "application/json"),
        (b"{", "application/json"),
        (b"\xff\xfe", "application/json"),
        (b"[" * 100_000, "application/json"),
        (b'{"texts": ' * 5_000, "application/json"),
        (b'{"texts": {}, "number": 1e999, "page": "a"}', "application/json"),
        (b"texts=1", "application/x-www-form-urlencoded"),
        (b'{"texts": {}}', "text/plain"),
    ],
    ids=range(8),
)
def test_a_body_that_is_no_state_is_refused_in_words(client, body, kind):
    shown = client.post("/answer", data=body, content_type=kind)
    assert shown.status_code == 200
    assert "Traceback" not in shown.text
    if b"number" not in body:
        assert shown.get_json()["fault"]


def test_a_body_that_is_too_large_is_refused_before_it_is_read(client):
    shown = client.post(
        "/answer", data=b" " * (LARGEST_REQUEST + 1), content_type="application/json"
    )
    assert shown.status_code == 413
    assert "Traceback" not in shown.text


def test_nothing_but_a_post_reaches_the_answers(client):
    """A link on another page can only open the page itself."""
    assert client.put("/answer", json={}).status_code == 405
    assert client.get("/answer").mimetype == "text/html"
