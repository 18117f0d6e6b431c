"""The headline: tuning finds the floor, and the story it tells is the one of the numbers."""

import html
import sys

import numpy as np
import pytest

from selftrain import Recipe, solve
from selftrain.report.__main__ import main
from selftrain.report.finding import finding, remarks
from selftrain.report.headline import BOUNDS, PROBLEM, Contender, headline, simulated


@pytest.fixture(scope="module")
def told():
    return simulated(headline(), features=512, seeds=2)


def test_the_labelled_points_alone_are_at_the_floor_of_a_scan(told):
    problem = PROBLEM.replace(steps=0)
    scanned = [float(solve(problem, Recipe(lambda_l=x)).error[0]) for x in np.logspace(-8, -1, 60)]
    assert told.labeled_only.run.error[0] <= min(scanned)


def test_tuned_hyperparameters_are_within_the_bounds(told):
    for contender in (told.naive, told.helped):
        for name in contender.tuned:
            low, high = BOUNDS[name]
            assert low <= getattr(contender.run.recipe, name) <= high


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        (Recipe(lambda_l=0.1, lambda_u=1e-13), {"lambda_l": "highest", "lambda_u": "lowest"}),
        (Recipe(lambda_l=0.01, lambda_u=0.01), {"annealing": "lowest"}),
        (Recipe(lambda_l=0.01, lambda_u=0.01, annealing=1.0), {}),
    ],
)
def test_hyperparameters_at_an_end_of_their_range_are_told(recipe, expected):
    tuned = tuple(BOUNDS) if "annealing" in expected or not expected else tuple(expected)
    run = solve(PROBLEM.replace(steps=1), recipe)
    assert Contender("x", tuned, run).at_bounds == expected


def test_order_of_the_contenders(told):
    last = {name: getattr(told, name).run.error[-1] for name in ("naive", "helped", "unhelped")}
    alone = told.labeled_only.run.error[0]
    assert told.limits.semi_supervised < last["helped"] < last["naive"] <= alone
    assert told.limits.all_labeled < told.supervised.error < last["helped"]
    assert last["unhelped"] > alone
    assert told.limits.labeled_only < alone


def test_finite_systems_follow_the_theory_of_the_heuristics(told):
    ensemble = told.helped.simulated
    np.testing.assert_allclose(ensemble.mean("error"), told.helped.run.error, atol=0.04)


def test_sentences_are_about_these_numbers(told):
    asked, naive, helped = finding(told)
    alone, full = told.labeled_only.run.error[0], told.supervised.error
    shares = [(alone - one.run.error[-1]) / (alone - full) for one in (told.naive, told.helped)]
    assert "20%" in asked
    assert "0.5 labelled samples" in asked
    assert f"{shares[0]:.0%} of the gap" in naive
    assert f"close {shares[1]:.0%}" in helped
    assert f"{told.limits.semi_supervised:.4f}" in helped
    assert any("lambda_l of" in line and "highest" in line for line in remarks(told))


def test_report_is_a_page_and_a_table(told, monkeypatch, capsys, tmp_path):
    """The page is there with the finding before any figure, and says so; at the end it has all."""
    seen = []

    def no_figures(*_, **__):
        seen.append((tmp_path / "new" / "index.html").read_text(encoding="utf-8"))
        return []

    monkeypatch.setattr("selftrain.report.__main__.headline", lambda: told)
    monkeypatch.setattr("selftrain.report.__main__.run", no_figures)
    monkeypatch.setattr(sys, "argv", ["report", "--out", str(tmp_path / "new"), "--seeds", "0"])
    main()
    printed = capsys.readouterr().out
    assert (tmp_path / "new" / "headline.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "new" / "index.html").read_text(encoding="utf-8")
    assert 'src="data:image/png;base64,' in seen[0]
    assert "this page reloads" in seen[0]
    assert "this page reloads" not in page
    order = [page.index(html.escape(sentence)) for sentence in finding(told)]
    assert order == sorted(order)
    assert order[-1] < page.index("data:image/png")
    assert all(sentence in printed for sentence in finding(told))
    assert printed.index(finding(told)[0]) == 0
    for text in (printed, page):
        for contender in (told.labeled_only, *told):
            assert contender.name in text
            assert f"{contender.run.error[-1]:.5f}" in text
        assert f"{told.limits.semi_supervised:.5f}" in text
        assert "λ_L, λ_U: ridge of" in text
        assert "mean ± standard deviation over 2 systems of 512 features" in text
