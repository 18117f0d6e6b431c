"""What happens when a visitor does something. What needs no numbers runs in the browser
(assets/explorer.js).
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
from dash import ClientsideFunction, Dash, Input, Output, State, ctx, html, no_update
from dash.exceptions import PreventUpdate

from ..errors import InvalidInput
from . import charts
from .controls import CHOICES, CONTROLS, ENTRIES, SWITCHES
from .drawing import Theme
from .jobs import JobBoard
from .opened import Map
from .page_state import PageState
from .presets import PRESETS
from .snippets import SETTINGS, python_lines, settings
from .workers import Busy, Superseded, TooLong, Workers

__all__ = ["register"]

TEXTS = [control.name for control in CONTROLS]
OTHERS = [member.name for member in (*SWITCHES, *CHOICES, *ENTRIES)]
FAULTS = [*TEXTS, *OTHERS]
BUSY = "The page is busy with other visitors: try again in a moment."
LONG = "This takes too long to answer here: fewer steps or a larger ridge would be faster."
BROKEN = "Something went wrong that should not have; the server has noted it."


def register(app: Dash, workers: Workers, jobs: JobBoard, opened: Map | None = None) -> None:
    """Connect the page with the theory."""
    _in_the_browser(app)
    _restore(app)
    _answer(app, workers)
    _jobs(app, jobs)
    _downloads(app, workers)
    _own_data(app)
    if opened is not None:
        _click(app, opened)


def _in_the_browser(app: Any) -> None:
    def client(name: str) -> ClientsideFunction:
        return ClientsideFunction(namespace="explorer", function_name=name)

    sliders = [f"{name}-slider" for name in TEXTS]
    app.clientside_callback(
        client("collect"),
        Output("state", "data"),
        *[Input(name, "value") for name in (*TEXTS, *OTHERS, *sliders)],
        Input("view", "value"),
        Input("t", "value"),
        Input("pin", "data"),
        Input("simulated", "data"),
        Input("dark", "data"),
        State("table", "data"),
        State("t", "max"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        client("faults"), Output("sink", "children", allow_duplicate=True),
        Input("faults", "data"), prevent_initial_call=True,
    )  # fmt: skip
    app.clientside_callback(
        client("dark"), Output("dark", "data"), Input("theme", "n_clicks"), Input("table", "data")
    )
    app.clientside_callback(
        client("play"), Output("film", "disabled"), Output("play", "children"),
        Input("play", "n_clicks"), State("film", "disabled"), prevent_initial_call=True,
    )  # fmt: skip
    app.clientside_callback(
        client("next_step"),
        Output("t", "value", allow_duplicate=True),
        Input("film", "n_intervals"),
        State("t", "value"),
        State("t", "max"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        client("pin"),
        Output("pin", "data", allow_duplicate=True),
        Input("pin-it", "n_clicks"),
        Input("unpin", "n_clicks"),
        State("state", "data"),
        State("table", "data"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        client("save_figure"), Output("sink", "children"), Input("save-figure", "n_clicks"),
        prevent_initial_call=True,
    )  # fmt: skip


def _page(state: PageState) -> list[Any]:
    """The values of all controls of a state."""
    texts = [state.texts[name] for name in TEXTS]
    others: list[Any] = [["yes"] if state.texts[switch.name] else [] for switch in SWITCHES]
    return [*texts, *others, *(state.texts[member.name] for member in (*CHOICES, *ENTRIES))]


def _restore(app: Dash) -> None:
    """The address, a preset, or the result of a search sets the controls."""
    outputs = [Output(name, "value") for name in (*TEXTS, *OTHERS)]

    @app.callback(
        *outputs,
        Output("view", "value"),
        Output("pin", "data"),
        Output("t", "value"),
        Output("about", "children"),
        Input("address", "search"),
        Input("job", "data"),
        Input("picked", "data"),
        *[Input(f"preset-{name}", "n_clicks") for name in PRESETS],
    )
    @_spoken(len(outputs) + 4, {})
    def restore(search: Any, job: Any, picked: Any, *_clicks: Any) -> list[Any]:
        if ctx.triggered_id == "picked":
            if not isinstance(picked, str):
                raise PreventUpdate
            return [*_page(PageState.from_query(picked)), no_update, no_update, 10**6, ""]
        if ctx.triggered_id == "job":
            if not isinstance(job, dict) or job.get("status") != "done" or "texts" not in job:
                raise PreventUpdate
            return [*_page(PageState.from_store(job)), no_update, no_update, 10**6, ""]
        preset = str(ctx.triggered_id).removeprefix("preset-")
        if preset in PRESETS:
            state, about = PRESETS[preset].state(), PRESETS[preset].about
        elif isinstance(search, str) and search.strip("?"):
            state = PageState.from_query(search)
            about = ". ".join(state.remarks)
        else:
            state, about = PRESETS["headline"].state(), PRESETS["headline"].about
        shown = 10**6 if state.t < 0 else state.t
        return [*_page(state), state.view, state.pin, shown, about]


def _answer(app: Dash, workers: Workers) -> None:
    outputs = [
        Output("chart", "figure"), Output("sentences", "children"), Output("numbers", "children"),
        Output("t", "max"), Output("t-shown", "children"), Output("python", "children"),
        Output("command", "children"), Output("fault", "children"), Output("faults", "data"),
    ]  # fmt: skip

    @app.callback(*outputs, Input("state", "data"), prevent_initial_call=True)
    @_spoken(len(outputs), {7: BROKEN})
    def show(data: Any) -> list[Any]:
        page, number = _identity(data)
        try:
            shown = workers.ask("answer", data, page, number)
        except Superseded:
            raise PreventUpdate from None
        except (TooLong, Busy) as error:
            shown = {"fault": LONG if isinstance(error, TooLong) else BUSY, "field": None}
        field = shown.get("field")
        if "fault" in shown:
            beside = field in FAULTS
            general, faults = ("", {field: shown["fault"]}) if beside else (shown["fault"], {})
            return [no_update, no_update, [], *[no_update] * 4, general, faults]
        return [
            shown["figure"],
            [html.P(sentence) for sentence in shown["sentences"]],
            [
                html.Span(f"Step {shown['t']}:"),
                *[html.Span([html.B(name), f" {value}"]) for name, value in shown["numbers"]],
            ],
            max(1, shown["steps"]),
            str(shown["t"]),
            shown["python"],
            shown["command"],
            "",
            {},
        ]


def _identity(data: Any) -> tuple[str, int]:
    """Which page a request comes from, and its number there."""
    if not isinstance(data, dict):
        return "", 0
    page, number = data.get("page"), data.get("number")
    if not isinstance(page, str) or not isinstance(number, int) or not 0 <= number < 2**53:
        return "", 0
    return page[:64], number


def _jobs(app: Dash, jobs: JobBoard) -> None:
    searches = ("best-constants", "best-heuristics", "best-schedule")

    @app.callback(
        Output("job", "data"),
        Output("clock", "disabled"),
        *[Input(name, "n_clicks") for name in (*searches, "simulate", "plan-it", "shape-it")],
        State("upload", "contents"),
        State("target", "value"),
        State("state", "data"),
        State("job", "data"),
        State("features", "value"),
        State("seeds", "value"),
        prevent_initial_call=True,
    )
    @_spoken(2, {})
    def start(*values: Any) -> list[Any]:
        contents, target, state, job, features, seeds = values[-6:]
        known = _job_id(job)
        if known is not None:
            jobs.cancel(known)
        asked = str(ctx.triggered_id)
        rows = {"contents": contents, "target": target, "state": state}
        if asked == "simulate":
            begun = jobs.start("simulate", {"state": state, "features": features, "seeds": seeds})
        elif asked in ("plan-it", "shape-it"):
            begun = jobs.start("data" if asked == "plan-it" else "shape", rows)
        else:
            kind = asked.removeprefix("best-")
            begun = jobs.start("optimize", {"state": state, "search": kind})
        return [begun.shown(), False]

    @app.callback(
        Output("job", "data", allow_duplicate=True),
        Output("clock", "disabled", allow_duplicate=True),
        Input("clock", "n_intervals"),
        Input("cancel", "n_clicks"),
        State("job", "data"),
        prevent_initial_call=True,
    )
    @_spoken(2, {})
    def watch(_ticks: Any, _clicks: Any, job: Any) -> list[Any]:
        known = _job_id(job)
        if ctx.triggered_id == "cancel" and known is not None:
            jobs.cancel(known)
        found = None if known is None else jobs.get(known)
        if found is None:
            return [no_update, True]
        shown = found.shown()
        return [no_update if shown == job else shown, found.ended]

    @app.callback(
        Output("progress", "children"), Output("cancel", "disabled"), Output("simulated", "data"),
        Input("job", "data"), State("simulated", "data"), prevent_initial_call=True,
    )  # fmt: skip
    @_spoken(3, {0: BROKEN})
    def follow(job: Any, before: Any) -> list[Any]:
        if not isinstance(job, dict):
            raise PreventUpdate
        ended = job.get("status") in ("done", "failed", "cancelled")
        points = job.get("simulated")
        changed = points is not None and points != before
        return [job.get("progress", ""), ended, points if changed else no_update]


def _job_id(job: Any) -> str | None:
    """The id of the job that a page says it started."""
    known = job.get("id") if isinstance(job, dict) else None
    return known if isinstance(known, str) else None


def _own_data(app: Dash) -> None:
    @app.callback(
        Output("chosen", "children"), Input("upload", "filename"), prevent_initial_call=True
    )
    @_spoken(1, {0: BROKEN})
    def chosen(name: Any) -> list[Any]:
        return [str(name)[:80] if isinstance(name, str) else ""]

    @app.callback(
        Output("plan", "children"), Output("own", "figure"), Output("own", "style"),
        Input("job", "data"), prevent_initial_call=True,
    )  # fmt: skip
    @_spoken(3, {0: BROKEN})
    def show(job: Any) -> list[Any]:
        if not isinstance(job, dict) or job.get("kind") != "data":
            raise PreventUpdate
        lines, figure = job.get("answer"), job.get("own")
        said = "\n".join(str(one) for one in lines) if isinstance(lines, list) else job["progress"]
        if figure is None:
            return [said, no_update, {"display": "none"}]
        return [said, figure, {"display": "block", "height": "22rem"}]


def _click(app: Dash, opened: Map) -> None:
    """A click on the map of an opened sweep loads the point."""

    @app.callback(Output("map", "figure"), Input("quantity", "value"), Input("dark", "data"))
    @_spoken(1, {})
    def draw(name: Any, dark: Any) -> list[Any]:
        chosen = name if name in opened.quantities else next(iter(opened.quantities))
        return [charts.heat_map(Theme(dark is True), opened, chosen)]

    @app.callback(
        Output("picked", "data"), Output("fault", "children", allow_duplicate=True),
        Input("map", "clickData"), prevent_initial_call=True,
    )  # fmt: skip
    @_spoken(2, {1: BROKEN})
    def pick(clicked: Any) -> list[Any]:
        point = clicked["points"][0]
        values = [point["x"], point["y"]][: len(opened.axes)]
        place = tuple(
            int(np.argmin(np.abs(np.array(axis) - float(at))))
            for axis, at in zip(opened.values, values, strict=True)
        )
        try:
            return [opened.state_at(place).query(), ""]
        except InvalidInput as error:
            return [no_update, f"This point is outside what the page can show: {error}"]


def _downloads(app: Dash, workers: Workers) -> None:
    @app.callback(
        Output("download", "data"),
        Input("save-data", "n_clicks"),
        Input("save-python", "n_clicks"),
        Input("save-settings", "n_clicks"),
        State("state", "data"),
        prevent_initial_call=True,
    )
    @_spoken(1, {})
    def download(_data: Any, _python: Any, _settings: Any, state: Any) -> list[Any]:
        if ctx.triggered_id == "save-python":
            script = python_lines(PageState.from_store(state)) + "\n"
            return [{"content": script, "filename": "selftrain-run.py"}]
        if ctx.triggered_id == "save-settings":
            return [{"content": settings(PageState.from_store(state)), "filename": SETTINGS}]
        return [{"content": workers.ask("table", state), "filename": "selftrain-run.csv"}]


def _spoken(
    count: int, words: dict[int, str]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """No exception reaches the page: it shows `words` instead, and the server writes the
    traceback.
    """

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*values: Any) -> Any:
            try:
                result = function(*values)
            except PreventUpdate:
                raise
            except Exception:
                traceback.print_exc(file=sys.stderr)
                result = [words.get(i, no_update) for i in range(count)]
                if all(value is no_update for value in result):
                    raise PreventUpdate from None
            return result if count > 1 else result[0]

        return guarded

    return wrap
