"""The page: controls on the left, the picture and what it says on the right. No behaviour in
here.
"""

from __future__ import annotations

from typing import Any

from dash import dcc, html

from .controls import CHOICES, CONTROLS, SWITCHES, Choice, Control, Switch
from .opened import Map
from .page_state import VIEWS
from .presets import PRESETS
from .tasks import LIMITS

__all__ = ["SLIDER_STEPS", "page"]

LARGEST_FILE = 5 * 2**20
"""Bytes a visitor's table may have; a request holds a third more."""

SLIDER_STEPS = 1000
"""Positions of a slider; the page turns them into values."""

INTRO = (
    (
        "A model with a few labelled points labels unlabelled ones itself, fits again, and repeats:"
        " self-training."
    ),
    (
        "Move a slider and see what the theory of large systems answers: does the error fall, or do"
        " the labels run into one class?"
    ),
    (
        "You start on imbalanced classes: annealed labels with a fixed bias (colour) against plain"
        " self-training (grey)."
    ),
)

GROUPS = {
    "problem": "The problem",
    "recipe": "The recipe",
    "shift": "Unlabelled points that differ",
}


def page(opened: Map | None = None) -> html.Div:
    """Everything on the page; `opened` is a sweep to click on."""
    return html.Div(
        id="page",
        children=[
            dcc.Location(id="address", refresh=False),
            dcc.Store(id="table", data=_table()),
            dcc.Store(id="state"),
            dcc.Store(id="pin", data=""),
            dcc.Store(id="simulated"),
            dcc.Store(id="job"),
            dcc.Store(id="picked"),
            dcc.Store(id="dark", data=False),
            dcc.Interval(id="clock", interval=400, disabled=True),
            dcc.Interval(id="film", interval=450, disabled=True),
            dcc.Download(id="download"),
            html.Div(id="sink", hidden=True),
            _header(),
            html.Main([_sidebar(), _stage(opened)]),
        ],
    )


def _header() -> html.Header:
    return html.Header(
        [
            html.H1("selftrain explorer"),
            html.Button("Dark or light", id="theme", className="quiet"),
            html.Div([html.P(sentence) for sentence in INTRO], id="intro"),
        ]
    )


def _sidebar() -> html.Section:
    presets = [
        html.Button(preset.title, id=f"preset-{name}", title=preset.about, className="quiet")
        for name, preset in PRESETS.items()
    ]
    parts: list[Any] = [
        html.Details([html.Summary("Start from a setting of the paper"), *presets], id="presets"),
        html.P("", id="about", className="help", role="status"),
    ]
    for group, title in GROUPS.items():
        members = [_control(control) for control in CONTROLS if control.group == group]
        members += [_switch(switch) for switch in SWITCHES if switch.group == group]
        members += [_choice(choice) for choice in CHOICES if choice.group == group]
        if group == "shift":
            parts.append(html.Details([html.Summary(title), *members]))
        else:
            parts.append(html.Fieldset([html.Legend(title), *members]))
    named: Any = {"aria-label": "Controls"}
    return html.Section(parts, id="controls", **named)


def _control(control: Control) -> html.Div:
    text = "" if control.default is None else f"{control.default:g}"
    return html.Div(
        [
            html.Label([control.label, " ", *_symbol(control.symbol)], htmlFor=control.name),
            html.Div(
                [
                    html.Label(
                        [
                            html.Span(f"slider of {control.label}", className="unseen"),
                            dcc.Input(
                                id=f"{control.name}-slider",
                                type="range",
                                min=0,
                                max=SLIDER_STEPS,
                                step=1,
                                value=0,
                            ),
                        ],
                        className="slider",
                    ),
                    dcc.Input(
                        id=control.name, type="text", value=text, debounce=0.4, autoComplete="off"
                    ),
                ],
                className="pair",
            ),
            html.P(control.help, className="help"),
            html.P("", id=f"{control.name}-fault", className="fault", role="alert"),
        ],
        className="control",
    )


def _symbol(symbol: str) -> list[Any]:
    """A symbol with its index set low."""
    letter, _, index = symbol.partition("_")
    return [html.I(letter), html.Sub(index)] if index else [html.I(letter)]


def _switch(switch: Switch) -> html.Div:
    return html.Div(
        [
            dcc.Checklist(
                id=switch.name,
                options=[{"label": switch.label, "value": "yes"}],
                value=["yes"] if switch.default else [],
            ),
            html.P(switch.help, className="help"),
            html.P("", id=f"{switch.name}-fault", className="fault", role="alert"),
        ],
        className="control",
    )


def _choice(choice: Choice) -> html.Div:
    return html.Div(
        [
            html.Fieldset(
                [
                    html.Legend(choice.label),
                    dcc.RadioItems(
                        id=choice.name,
                        options=[{"label": name, "value": name} for name in choice.options],
                        value=choice.default,
                        inline=True,
                    ),
                ],
                className="inner",
            ),
            html.P("", id=f"{choice.name}-fault", className="fault", role="alert"),
        ],
        className="control",
    )


def _stage(opened: Map | None) -> html.Section:
    named: Any = {"aria-label": "Result"}
    return html.Section(
        [
            html.Fieldset(
                [
                    html.Legend("View", className="unseen"),
                    dcc.RadioItems(
                        id="view",
                        options=[{"label": title, "value": name} for name, title in VIEWS.items()],
                        value="error",
                        inline=True,
                    ),
                ],
                className="views inner",
            ),
            dcc.Graph(
                id="chart",
                figure={"data": [], "layout": {}},
                responsive=True,
                config={"displaylogo": False, "toImageButtonOptions": {"format": "svg"}},
            ),
            html.Div(
                [
                    html.Label("Step shown", htmlFor="t"),
                    dcc.Input(id="t", type="range", min=0, max=16, step=1, value=16),
                    html.Output("", id="t-shown"),
                    html.Button("Play", id="play"),
                ],
                className="steps",
            ),
            html.Div("", id="fault", className="fault", role="alert"),
            html.Div([], id="sentences", role="status"),
            html.Div([], id="numbers"),
            _actions(),
            _map(opened),
            _own_data(),
            html.Details(
                [
                    html.Summary("The same in Python and on the command line"),
                    html.Pre("", id="python", tabIndex="0"),
                    html.Pre("", id="command", tabIndex="0"),
                ]
            ),
        ],
        id="stage",
        **named,
    )


def _map(opened: Map | None) -> html.Div:
    """The sweep that was opened: a click loads the point."""
    if opened is None:
        return html.Div(id="map-place", hidden=True)
    names = list(opened.quantities)
    return html.Div(
        [
            html.H2(f"Sweep {opened.title}: a click loads the point"),
            html.Fieldset(
                [
                    html.Legend("Quantity"),
                    dcc.RadioItems(
                        id="quantity",
                        options=[{"label": name, "value": name} for name in names],
                        value=names[0],
                        inline=True,
                    ),
                ],
                className="inner",
            ),
            dcc.Graph(id="map", figure={"data": [], "layout": {}}, config={"displaylogo": False}),
        ],
        id="map-place",
    )


def _own_data() -> html.Details:
    """A table of the visitor's: the answer of `plan`, theory and real rows."""
    return html.Details(
        [
            html.Summary("Your data"),
            html.P(
                "A CSV file with one column per feature and one with the class; leave the class"
                " empty where it is not known. The rows stay on this machine and are not kept.",
                className="help",
            ),
            html.Div(
                [
                    dcc.Upload(
                        html.Button("Choose a CSV file", id="choose"),
                        id="upload",
                        accept=".csv,text/csv",
                        max_size=LARGEST_FILE,
                    ),
                    html.Span("", id="chosen", role="status"),
                    html.Label(
                        ["Column of the classes ", dcc.Input(id="target", type="text", value="y")]
                    ),
                    html.Button("Plan and compare", id="plan-it"),
                ],
                className="row",
            ),
            html.Pre("", id="plan", tabIndex="0"),
            dcc.Graph(
                id="own",
                figure={"data": [], "layout": {}},
                responsive=True,
                config={"displaylogo": False},
                style={"display": "none"},
            ),
        ],
        id="own-data",
    )


def _actions() -> html.Div:
    most = LIMITS["features"]
    return html.Div(
        [
            html.Div(
                [
                    html.Button("Pin this run", id="pin-it"),
                    html.Button("Unpin", id="unpin", className="quiet"),
                    html.Button("Best constants", id="best-constants"),
                    html.Button("Best with heuristics", id="best-heuristics"),
                    html.Button("Best schedule", id="best-schedule"),
                ],
                className="row",
            ),
            html.Div(
                [
                    html.Label(
                        [
                            "Features ",
                            dcc.Input(
                                id="features", type="number", value=4096, min=2, max=most, step=1
                            ),
                        ]
                    ),
                    html.Label(
                        [
                            "Seeds ",
                            dcc.Input(
                                id="seeds",
                                type="number",
                                value=8,
                                min=1,
                                max=LIMITS["seeds"],
                                step=1,
                            ),
                        ]
                    ),
                    html.Button("Simulate", id="simulate"),
                    html.Button("Cancel", id="cancel", disabled=True, className="quiet"),
                    html.Span("", id="progress", role="status"),
                ],
                className="row",
            ),
            html.Div(
                [
                    html.Button("Download data", id="save-data"),
                    html.Button("Download figure", id="save-figure"),
                    html.Button("Download Python", id="save-python"),
                ],
                className="row",
            ),
        ],
        id="actions",
    )


def _table() -> dict[str, Any]:
    """What the page needs to turn slider positions into values."""
    return {
        "steps": SLIDER_STEPS,
        "controls": [
            {
                "name": control.name,
                "low": control.low,
                "high": control.high,
                "scale": control.scale,
                "zero": control.zero,
                "infinite": control.infinite,
            }
            for control in CONTROLS
        ],
        "switches": [switch.name for switch in SWITCHES],
        "choices": [choice.name for choice in CHOICES],
    }
