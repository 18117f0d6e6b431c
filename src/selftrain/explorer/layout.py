"""The layout of the page, without behaviour: controls on the left, figure and text on the right."""

from __future__ import annotations

from typing import Any

from dash import dcc, html
from dash.development.base_component import Component

from .controls import CONTROLS, MOST_STEPS, NUMBERS, Control
from .opened import Map
from .own_data import LARGEST_FILE
from .page_state import VIEWS
from .presets import PRESETS
from .tasks import LIMITS

SLIDER_STEPS = 1000
"""Number of positions of a slider; assets/visitor.js converts them to values."""

INTRO = (
    "A model with few labelled samples labels others itself, fits again, and repeats: this is"
    " self-training.",
    "Move a slider, and the theory of large systems answers at once: does the error fall, or do the"
    " labels drift into one class?",
    "Shown first: one positive in five, with annealed labels and a fixed bias (blue) and without"
    " (grey).",
)

STARTING = "Starting: the first answer takes a few seconds."

GROUPS = {
    "problem": "The problem",
    "recipe": "The recipe",
    "shift": "Unlabelled samples that differ",
}


def page(opened: Map | None = None) -> html.Div:
    """Return all elements of the page; `opened` is a sweep whose points can be clicked."""
    stores = ("restored", "job-asked", "file-asked", "job", "mapped")
    return html.Div(
        id="page",
        children=[
            dcc.Location(id="address", refresh=False),
            dcc.Store(id="table", data=_table()),
            *(dcc.Store(id=name) for name in stores),
            dcc.Store(id="dark", data=False),
            dcc.Interval(id="clock", interval=400, disabled=True),
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
            html.Div([html.P(sentence) for sentence in INTRO], id="intro"),
            html.Button("Dark or light", id="theme", className="quiet"),
        ]
    )


def _sidebar() -> html.Section:
    presets = [
        html.Button(preset.title, id=f"preset-{name}", title=preset.about, className="quiet")
        for name, preset in PRESETS.items()
    ]
    parts: list[Any] = [
        html.Details([html.Summary("Start from a setting"), *presets], id="presets"),
        html.P("", id="about", className="help", role="status"),
    ]
    for group, title in GROUPS.items():
        members = [_control(one) for one in CONTROLS.values() if one.group == group]
        if group == "shift":
            parts.append(html.Details([html.Summary(title), *members]))
        else:
            parts.append(html.Fieldset([html.Legend(title), *members]))
    return html.Section(parts, id="controls", **_label("Controls"))


def _label(text: str) -> dict[str, Any]:
    """Return the attribute with the name of an element for screen readers."""
    return {"aria-label": text}


def _control(control: Control) -> html.Div:
    """Return a control: its label, inputs and help, and a place for error messages."""
    name = control.name
    label: Any = html.Label([control.label, *_symbol(control)], htmlFor=name)
    inputs: Any = _field(name, control.start)
    if control.kind == "number":
        slider = PlainInput(
            id=f"{name}-slider", type="range", min=0, max=SLIDER_STEPS, step=1,
            **_label(f"slider of {control.label}"),
        )  # fmt: skip
        inputs = html.Div([slider, inputs], className="pair")
    elif control.kind == "choice":
        options = {option: option for option in control.options}
        label, inputs = None, _radio(name, control.label, options, control.start)
    elif control.kind == "switch":
        box = PlainInput(id=name, type="checkbox", checked=control.start == "yes")
        label, inputs = None, html.Label([box, control.label])
    fault = html.P("", id=f"{name}-fault", className="fault", role="alert")
    help = html.P(control.help, className="help") if control.help else None
    return html.Div([label, inputs, help, fault], className="control")


def _field(name: str, text: str) -> PlainInput:
    return PlainInput(id=name, type="text", value=text)


def _symbol(control: Control) -> list[Any]:
    """Return the symbol of a control with its index as a subscript."""
    letter, _, index = control.symbol.partition("_")
    return [" ", html.I(letter), *([html.Sub(index)] if index else [])] if letter else []


def _radio(name: str, title: str, options: dict[str, str], chosen: str) -> html.Fieldset:
    """Return radio buttons in a row; `options` maps values to titles."""
    members = [
        html.Label(
            [PlainInput(type="radio", name=name, value=value, checked=value == chosen), text]
        )
        for value, text in options.items()
    ]
    return html.Fieldset([html.Legend(title), *members], id=name, className="inner")


def _stage(opened: Map | None) -> html.Section:
    return html.Section(
        [
            _radio("view", "View", VIEWS, "error"),
            html.Div(id="chart"),
            html.Div(
                [
                    html.Label("Step shown", htmlFor="t"),
                    PlainInput(id="t", type="range", min=0, max=MOST_STEPS, step=1),
                    html.Output("", id="t-shown"),
                    html.Button("Play", id="play"),
                ],
                className="steps",
            ),
            _actions(),
            html.Div("", id="fault", className="fault", role="alert"),
            html.Div([], id="sentences", role="status"),
            html.Div(STARTING, id="numbers"),
            _downloads(),
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
        **_label("Result"),
    )


def _map(opened: Map | None) -> html.Div:
    """Return the map of an opened sweep, on which a click loads a point; hidden without a sweep."""
    if opened is None:
        return html.Div(id="map-place", hidden=True)
    names = {name: name for name in opened.quantities}
    return html.Div(
        [
            html.H2(f"Sweep {opened.title}: a click loads the point"),
            _radio("quantity", "Quantity", names, next(iter(names))),
            dcc.Graph(
                id="map", figure={"data": [], "layout": {}}, config={"displayModeBar": False}
            ),
        ],
        id="map-place",
    )


def _own_data() -> html.Details:
    """Return the section for the visitor's own table: the text of `plan`, theory and real rows."""
    return html.Details(
        [
            html.Summary("Your data"),
            html.P(
                "A CSV file with one column per feature and one with the class; leave the class"
                " empty where it is not known. “Plan and compare” shows what to expect of"
                " self-training and a curve of real rows; “Use their covariance” moves the clusters"
                " of the rows into the problem above. The rows stay on this machine, unstored.",
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
                    html.Label(["Column of the classes ", _field("target", "y")]),
                    html.Button("Plan and compare", id="plan-it"),
                    html.Button("Use their covariance", id="shape-it"),
                ],
                className="row",
            ),
            html.Pre("", id="plan", tabIndex="0"),
            dcc.Graph(
                id="own",
                figure={"data": [], "layout": {}},
                responsive=True,
                config={"displayModeBar": False},
                style={"display": "none"},
            ),
        ],
        id="own-data",
    )


def _actions() -> html.Div:
    """Return the buttons to search, compare and simulate."""
    constants = ("Best constants", "best-constants")
    heuristics = ("Best with heuristics", "best-heuristics")
    return html.Div(
        [
            _row("Search", *_buttons(constants, heuristics, ("Best schedule", "best-schedule"))),
            _row("Compare", *_buttons(("Pin this run", "pin-it"), ("Unpin", "unpin"), quiet=True)),
            _row(
                "Check",
                _amount("Features ", "features", 4096, 2),
                _amount("Seeds ", "seeds", 8, 1),
                *_buttons(("Simulate", "simulate")),
            ),
            _row(
                "Progress",
                html.Button("Cancel", id="cancel", disabled=True, className="quiet"),
                html.Span("nothing is running", id="progress", role="status"),
            ),
        ],
        id="actions",
    )


def _downloads() -> html.Div:
    return html.Div(
        _row(
            "Download",
            *_buttons(
                ("Data", "save-data"), ("Figure", "save-figure"), ("Python", "save-python"),
                ("Settings", "save-settings"), quiet=True,
            ),
        ),
        id="downloads",
    )  # fmt: skip


def _buttons(*pairs: tuple[str, str], quiet: bool = False) -> list[html.Button]:
    """Return buttons, each given by its title and its id."""
    more: dict[str, Any] = {"className": "quiet"} if quiet else {}
    return [html.Button(title, id=name, **more) for title, name in pairs]


def _row(title: str, *members: Any) -> html.Div:
    """Return a group of elements in a row, after a title."""
    lead = html.Span(title, className="lead")
    return html.Div([lead, *members], className="row", role="group", **_label(title))


def _amount(label: str, name: str, value: int, least: int) -> html.Label:
    field = PlainInput(id=name, type="number", value=value, min=least, max=LIMITS[name], step=1)
    return html.Label([label, field])


def _table() -> dict[str, Any]:
    """Return the facts about the inputs that assets/visitor.js needs."""
    known = ("name", "low", "high", "scale", "zero", "infinite")
    return {
        "places": SLIDER_STEPS,
        "mostSteps": MOST_STEPS,
        "controls": [{name: getattr(one, name) for name in known} for one in NUMBERS.values()],
        "fields": [one.name for one in CONTROLS.values() if one.kind in ("number", "text")],
        "switches": [one.name for one in CONTROLS.values() if one.kind == "switch"],
        "choices": [one.name for one in CONTROLS.values() if one.kind == "choice"],
        "presets": {
            name: preset.state().stored() | {"about": preset.about}
            for name, preset in PRESETS.items()
        },
    }


PROPERTIES = ["id", "type", "name", "value", "checked", "min", "max", "step"]
WILDCARDS = ["aria-"]
NO_CHILDREN: list[str] = []


class PlainInput(Component):
    """A plain HTML input of any type, which Dash lacks. The browser stores its value, so nothing is
    rendered again when a slider moves (assets/inputs.js). `value` and `checked` are its initial
    state.
    """

    _namespace, _type = "explorer_inputs", "PlainInput"
    _children_props = NO_CHILDREN
    _prop_names = available_properties = PROPERTIES
    _valid_wildcard_attributes = available_wildcard_properties = WILDCARDS

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)  # type: ignore[no-untyped-call]
