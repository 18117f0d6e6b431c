"""Hostile requests to every callback of the page: an answer or a refusal, never a stack trace."""

import json

import pytest
from browser import callback_request
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from selftrain.explorer.answers import answer, table
from selftrain.explorer.jobs import JobBoard, VisitorJob
from selftrain.explorer.page_state import PageState
from selftrain.explorer.server import create_app

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
    values = {name: data.draw(STATES if name == "state.data" else VALUES) for name in names}
    sent = json.dumps(callback_request(dependency, values))
    answered = client.post("/_dash-update-component", data=sent, content_type="application/json")
    assert answered.status_code in (200, 204)
    assert b"Traceback" not in answered.data
