"""Figures with other parameters: found by number and label, drawn, not judged; what does not fit is
refused.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import selftrain
from selftrain import Problem, Recipe, solve
from selftrain.errors import InvalidInput
from selftrain.paper.formulas import to_html
from selftrain.paper.registry import IDS, figure
from selftrain.paper.run import run
from selftrain.paper.variation import parameters

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "plots")]
from layout import faults  # noqa: E402
from synthetic import data_of  # noqa: E402

OTHER = {
    "alpha_l": 0.35,
    "alpha_u": 3.0,
    "rho": 0.3,
    "delta": 0.7,
    "steps": 8,
    "longest": 64,
    "lambda_l": 0.02,
    "lambda_u": 0.02,
}
NUMBERS = (
    "weights-logits",
    "macroscopic",
    "relative-error",
    "cosine",
    "selection",
    "batch-size",
    "optimal-ridge",
    "continuum",
    "heuristics",
    "annealing",
    "weights-logits-all",
    "macroscopic-all",
    "susceptibility",
    "single-shot-ridge",
    "single-shot-error",
)
"""In the order of the paper."""


@pytest.mark.parametrize("name", IDS)
def test_every_parameter_can_be_changed(name: str) -> None:
    one = figure(name)
    changed = figure(name, **{known: OTHER[known] for known in parameters(one)})
    data = data_of(changed, quick=True)
    assert faults(changed.draw(data)) == []
    if parameters(one):  # real rows have none: nothing was changed, so all is judged
        assert changed.claims(data, True) == changed.findings(data, True) == []
    assert to_html(changed.chosen)
    assert to_html(changed.caption(data))
    for part, task in changed.tasks(False).items():
        if part == "small-batches":  # made for one share
            assert {point["rho"] for point in task.grid.points} == {0.5}
            continue
        for point in task.grid.points:
            assert all(point[known] == OTHER[known] for known in parameters(one) if known in point)


def test_several_values_are_several_curves() -> None:
    changed = selftrain.paper.figure("relative-error", rho=(0.45, 0.35, 0.1), delta=0.8)
    data = data_of(changed, quick=False)
    assert data["chains"].rho.values.tolist() == [0.45, 0.35, 0.1]
    assert list(data) == ["chains"]  # claims are not judged, so only what is drawn is computed
    drawn = changed.draw(data)
    assert faults(drawn) == []
    colors = {line.get_color() for line in drawn.axes[0].get_lines()}
    assert len(colors) == 3


@pytest.mark.parametrize("name", IDS)
def test_what_a_change_leaves_as_it_is_is_named(name: str) -> None:
    """Alone, every parameter either reaches all that is drawn, or the picture and the record name
    the panels that it does not reach.
    """
    for known in parameters(figure(name)):
        changed = figure(name, **{known: OTHER[known]})
        kept = [
            part
            for part, task in changed.tasks(False).items()
            if any(point.get(known) != OTHER[known] for point in task.grid.points)
        ]
        assert bool(kept) is (known in changed.unchanged), (known, kept)
        drawn = changed.draw(data_of(changed, quick=True))
        assert faults(drawn) == []
        note = (drawn.get_suptitle() or "").replace("\n", " ")
        for panels in changed.unchanged.get(known, ()):
            assert panels in note
            assert f"Not changed by `{known}`: " in changed.chosen
            assert panels in changed.chosen
        assert bool(note) is bool(kept)


def test_panels_that_a_change_leaves_as_they_are() -> None:
    found = {
        (name, known): figure(name, **{known: OTHER[known]}).unchanged.get(known)
        for name in ("batch-size", "cosine", "susceptibility", "predictions")
        for known in ("rho", "lambda_u", "delta")
        if known in parameters(figure(name))
    }
    batches = "(c), the limit of balanced classes, which does not depend on the start"
    assert found == {
        ("batch-size", "rho"): (batches,),
        ("batch-size", "delta"): None,
        ("cosine", "rho"): ("the panel of small batches, which needs balanced classes",),
        ("cosine", "delta"): None,
        ("susceptibility", "rho"): None,
        ("susceptibility", "delta"): None,
        ("susceptibility", "lambda_u"): ("(b, c), where the ridges are tuned",),
        ("predictions", "rho"): None,
        ("predictions", "delta"): None,
        ("predictions", "lambda_u"): ("(d, e)",),
    }


def test_figures_have_the_numbers_and_labels_of_the_paper() -> None:
    for number, name in enumerate(NUMBERS, start=1):
        one = figure(f"fig{number}")
        assert one.id == name
        assert figure(f"Figure {number}") is one
        assert figure(one.place.label) is one


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("fig16", {}, "fig1 to fig15"),
        ("fig: vs", {}, "unknown figure"),
        ("cosine", {"rh": 0.3}, "did you mean 'rho'"),
        ("cosine", {"lambda_u": 0.3}, "no such parameter"),
        ("cosine", {"rho": 1.3}, "rho"),
        ("cosine", {"rho": "much"}, "rho"),
        ("cosine", {"longest": 100}, "power of two"),
        ("cosine", {"alpha_l": (0.2, 0.3)}, "one value"),
        ("cosine", {"rho": (0.2, 0.2)}, "different"),
        ("susceptibility", {"lambda_u": -1.0}, "lambda_u"),
    ],
)
def test_what_does_not_fit_is_refused(name: str, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        figure(name, **changes)


def test_a_changed_figure_is_computed_at_its_parameters(tmp_path: Path) -> None:
    """The error of the tuned run is the solver's at the recipe found, and the files stand next to
    the paper's own.
    """
    (made,) = run(
        ["fig9"],
        quick=True,
        out=tmp_path,
        workers=0,
        changes={"rho": 0.3, "longest": 2, "alpha_l": 0.7},
    )
    assert made.record is not None
    assert made.record["changes"] == {"rho": [0.3], "longest": [2], "alpha_l": [0.7]}
    assert all((tmp_path / name).is_file() for name in made.record["files"])
    assert not (tmp_path / "heuristics.png").exists()
    data = figure("heuristics", rho=0.3, longest=2, alpha_l=0.7).compute(quick=True, workers=0)
    one = data["chains"].isel(rho=0, delta=0, selection=0, heuristics=0, T=-1)
    problem = Problem(0.7, 2.0, 0.3, 0.75**2, steps=2)
    found = solve(problem, Recipe(float(one["lambda_l"]), float(one["lambda_u"])))
    assert float(one["error"]) == pytest.approx(float(found.error[-1]), rel=1e-7)
