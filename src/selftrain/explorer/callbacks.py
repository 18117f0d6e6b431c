"""The reactions of the page to its visitor. Those that compute nothing run in the browser
(assets/visitor.js); moving a slider sends one request, `/answer`; the others are Dash callbacks.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
from dash import ClientsideFunction, Dash, Input, Output, State, ctx, no_update
from dash.exceptions import PreventUpdate
from flask import Response, request
from werkzeug.exceptions import RequestEntityTooLarge

from ..errors import InvalidInput, SelfTrainError
from . import charts
from .drawing import Theme
from .jobs import JobBoard
from .opened import Map
from .page_state import PageState
from .presets import PRESETS
from .snippets import SETTINGS, python_lines, settings
from .workers import Busy, Superseded, TooLong, Workers

JOBS: dict[str, tuple[str, dict[str, str]]] = {
    "best-constants": ("optimize", {"search": "constants"}),
    "best-heuristics": ("optimize", {"search": "heuristics"}),
    "best-schedule": ("optimize", {"search": "schedule"}),
    "simulate": ("simulate", {}),
    "plan-it": ("data", {}),
    "shape-it": ("shape", {}),
}
"""The buttons that start a job: the kind of the job, and its further arguments."""

FILES = ("save-data", "save-python", "save-settings")

BUSY = "The page is busy with other visitors: try again in a moment."
LONG = (
    "This takes too long to answer here: fewer steps or a larger ridge would be faster, with three"
    " classes soft labels."
)
BROKEN = "Something went wrong that should not have; the server has noted it."


def register(app: Dash, workers: Workers, jobs: JobBoard, opened: Map | None = None) -> None:
    """Register all callbacks of the page."""
    _in_the_browser(app)
    _restore(app)
    _answer(app, workers)
    _jobs(app, jobs)
    _downloads(app, workers)
    if opened is not None:
        _click(app, opened)


def _in_the_browser(app: Any) -> None:
    """Register the callbacks that run in the browser (assets/visitor.js)."""

    def client(name: str) -> ClientsideFunction:
        return ClientsideFunction(namespace="explorer", function_name=name)

    app.clientside_callback(
        client("restore"), Output("sink", "children"),
        Input("restored", "data"), State("table", "data"),
    )  # fmt: skip
    for store, buttons in (("job-asked", JOBS), ("file-asked", FILES)):
        app.clientside_callback(
            client("asked"), Output(store, "data"),
            *[Input(name, "n_clicks") for name in buttons], prevent_initial_call=True,
        )  # fmt: skip
    app.clientside_callback(
        client("follow"), Output("progress", "children"), Output("cancel", "disabled"),
        Input("job", "data"), prevent_initial_call=True,
    )  # fmt: skip
    app.clientside_callback(
        client("own"), Output("plan", "children"), Output("own", "figure"), Output("own", "style"),
        Input("job", "data"), prevent_initial_call=True,
    )  # fmt: skip
    app.clientside_callback(
        client("named"), Output("chosen", "children"), Input("upload", "filename"),
        prevent_initial_call=True,
    )  # fmt: skip


def _restore(app: Dash) -> None:
    """Register the callback that sets the page from its address; without one, to the headline."""

    @app.callback(Output("restored", "data"), Input("address", "search"))
    @_guarded
    def restore(search: Any) -> dict[str, Any]:
        if isinstance(search, str) and search.strip("?"):
            state = PageState.from_query(search)
            return state.stored() | {"about": ". ".join(state.remarks)}
        headline = PRESETS["headline"]
        return headline.state().stored() | {"about": headline.about}


def _answer(app: Dash, workers: Workers) -> None:
    """Register `/answer`, the request for a moved slider: it receives the state of the page and
    returns everything that the page shows.
    """

    def show() -> Response:
        try:
            shown = _shown(workers, request.get_json(silent=True))
            if shown is None:
                return Response(status=204)
            return Response(json.dumps(shown, allow_nan=False), mimetype="application/json")
        except RequestEntityTooLarge:
            raise
        except Exception:
            traceback.print_exc(file=sys.stderr)
            return Response(json.dumps({"fault": BROKEN}), mimetype="application/json")

    app.server.add_url_rule("/answer", view_func=show, methods=["POST"])


def _shown(workers: Workers, data: Any) -> dict[str, Any] | None:
    """Return what a page with this state shows; None if the page has sent a newer request."""
    page, number = _identity(data)
    try:
        shown: dict[str, Any] = workers.ask("answer", data, page, number)
    except Superseded:
        return None
    except TooLong:
        return {"fault": LONG}
    except Busy:
        return {"fault": BUSY}
    return shown


def _identity(data: Any) -> tuple[str, int]:
    """Return the id of the page that sent a request, and the number of the request."""
    if not isinstance(data, dict):
        return "", 0
    page, number = data.get("page"), data.get("number")
    if not isinstance(page, str) or not isinstance(number, int) or not 0 <= number < 2**53:
        return "", 0
    return page[:64], number


def _jobs(app: Dash, jobs: JobBoard) -> None:
    @app.callback(
        Output("job", "data"),
        Output("clock", "disabled"),
        Input("job-asked", "data"),
        State("upload", "contents"),
        State("upload", "filename"),
        State("job", "data"),
        prevent_initial_call=True,
    )
    @_guarded
    def start(asked: Any, contents: Any, filename: Any, job: Any) -> list[Any]:
        if not isinstance(asked, dict) or asked.get("button") not in JOBS:
            raise PreventUpdate
        known = _job_id(job)
        if known is not None:
            jobs.cancel(known)
        kind, more = JOBS[asked["button"]]
        data = {name: asked.get(name) for name in ("state", "features", "seeds", "target")}
        if kind in ("data", "shape"):
            data |= {"contents": contents, "filename": filename}
        return [jobs.start(kind, data | more).shown(), False]

    @app.callback(
        Output("job", "data", allow_duplicate=True),
        Output("clock", "disabled", allow_duplicate=True),
        Input("clock", "n_intervals"),
        Input("cancel", "n_clicks"),
        State("job", "data"),
        prevent_initial_call=True,
    )
    @_guarded
    def watch(_ticks: Any, _clicks: Any, job: Any) -> list[Any]:
        known = _job_id(job)
        if ctx.triggered_id == "cancel" and known is not None:
            jobs.cancel(known)
        found = None if known is None else jobs.get(known)
        if found is None:
            return [no_update, True]
        shown = found.shown()
        return [no_update if shown == job else shown, found.ended]


def _job_id(job: Any) -> str | None:
    """Return the id of the job that the page refers to; None if there is none."""
    known = job.get("id") if isinstance(job, dict) else None
    return known if isinstance(known, str) else None


def _click(app: Dash, opened: Map) -> None:
    """Register the callbacks of an opened sweep: draw its map; a click loads the point."""

    @app.callback(Output("map", "figure"), Input("mapped", "data"), Input("dark", "data"))
    @_guarded
    def draw(name: Any, dark: Any) -> dict[str, Any]:
        known = isinstance(name, str) and name in opened.quantities
        chosen = name if known else next(iter(opened.quantities))
        return charts.heat_map(Theme(dark is True), opened, chosen)

    @app.callback(
        Output("restored", "data", allow_duplicate=True), Input("map", "clickData"),
        prevent_initial_call=True,
    )  # fmt: skip
    @_guarded
    def pick(clicked: Any) -> dict[str, Any]:
        point = clicked["points"][0]
        values = [point["x"], point["y"]][: len(opened.axes)]
        place = tuple(
            int(np.argmin(np.abs(np.array(axis) - float(at))))
            for axis, at in zip(opened.values, values, strict=True)
        )
        try:
            return {"texts": opened.state_at(place).texts, "t": -1}
        except InvalidInput as error:
            return {"fault": f"This point is outside what the page can show: {error}"}


def _downloads(app: Dash, workers: Workers) -> None:
    @app.callback(
        Output("download", "data"), Input("file-asked", "data"), prevent_initial_call=True
    )
    @_guarded
    def download(asked: Any) -> dict[str, Any]:
        if not isinstance(asked, dict) or asked.get("button") not in FILES:
            raise PreventUpdate
        data, button = asked.get("state"), asked["button"]
        try:
            state = PageState.from_store(data)
            if button == "save-python":
                return {"content": python_lines(state) + "\n", "filename": "selftrain-run.py"}
            if button == "save-settings":
                return {"content": settings(state), "filename": SETTINGS}
            return {"content": workers.ask("table", data), "filename": "selftrain-run.csv"}
        except (SelfTrainError, TooLong, Busy):
            raise PreventUpdate from None  # the page already shows what is wrong with its values


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with its exceptions caught: the page does not change, and the server
    prints the traceback.
    """

    def guarded(*values: Any) -> Any:
        try:
            return function(*values)
        except PreventUpdate:
            raise
        except Exception:
            traceback.print_exc(file=sys.stderr)
            raise PreventUpdate from None

    return guarded
