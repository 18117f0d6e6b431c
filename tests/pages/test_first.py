"""The headline: tuning finds the floor, and the story it tells is the one of the numbers."""

import html
import sys

import numpy as np
import pytest
from matplotlib.text import Text

from pages.first import examples, main
from pages.headline import BOUNDS, PROBLEM, Contender, headline, simulated
from pages.headline_picture import NARROW, WIDE, plot_headline
from pages.headline_text import finding, remarks
from selftrain import Recipe, solve


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
    sentences = finding(told)
    assert len(sentences) == 5
    _, asked, between, naive, helped = sentences
    alone, full = told.labeled_only.run.error[0], told.supervised.error
    shares = [(alone - one.run.error[-1]) / (alone - full) for one in (told.naive, told.helped)]
    assert "20% of the samples are positive" in asked
    assert "0.5 labelled samples" in asked
    for error in (alone, full, told.limits.semi_supervised):
        assert f"{error:.1%}" in between
    assert f"closes {shares[0]:.0%} of the gap between the two" in naive
    assert np.all(np.diff(told.naive.run.bias_to_norm) < 0)  # drift towards the larger class
    assert f"closes {shares[1]:.0%}" in helped
    assert any("best lambda_l of" in line and "highest" in line for line in remarks(told))


def test_four_lines_are_drawn_and_named(told):
    (ax,) = plot_headline(told).axes
    lines = [line for line in ax.lines if len(line.get_xdata()) and line.get_linestyle() != "None"]
    ends = sorted(float(line.get_ydata()[-1]) for line in lines)
    helped, naive = told.helped.run.error[-1], told.naive.run.error[-1]
    alone, full = told.labeled_only.run.error[0], told.supervised.error
    assert ends == sorted([helped, naive, alone, full])
    named = " ".join(text.get_text() for text in ax.texts)
    assert all(f"{100 * end:.1f} %" in named for end in ends)


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["page", "phone"])
def test_all_words_are_inside_the_picture(told, size):
    figure = plot_headline(told, size)
    figure.draw_without_rendering()
    (ax,) = figure.axes
    titles = [text for text in figure.findobj(Text) if "are positive" in text.get_text()]
    assert titles
    for text in (*titles, *ax.texts, ax.xaxis.label, ax.yaxis.label):
        box = text.get_window_extent()
        assert box.x0 >= 0, text
        assert box.x1 <= figure.bbox.x1, text


def told_page(told, monkeypatch, folder, first, second):
    """The page of a README with these two examples."""
    readme = folder / "README.md"
    readme.write_text(f"```python\n{first}\n```\n\n```python\n{second}\n```\n")
    out = folder / "new"
    monkeypatch.setattr("pages.first.headline", lambda: told)
    monkeypatch.setattr(sys, "argv", ["first", str(readme), "--out", str(out), "--seeds", "0"])
    main()
    return (out / "index.html").read_text(encoding="utf-8")


def test_the_first_page_has_story_picture_examples_and_numbers(told, monkeypatch, capsys, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "tutorial.md").write_text("# Tutorial\n")
    page = told_page(told, monkeypatch, tmp_path, "print(6 * '<7>')", "print(1e3)")
    printed = capsys.readouterr().out
    assert (tmp_path / "new" / "headline.png").read_bytes().startswith(b"\x89PNG")
    assert "this page reloads" not in page
    assert all(html.escape(sentence) in page for sentence in finding(told))
    assert all(sentence in printed for sentence in finding(told))
    order = [page.index(text) for text in ("Can a linear", "data:image/png", 6 * "&lt;7&gt;")]
    assert order == sorted(order)
    assert 6 * "<7>" in printed
    assert "1000.0" in page
    assert 'href="../docs/tutorial.md"' in page
    assert "faq.md" not in page
    for contender in (told.labeled_only, *told):
        assert contender.name in page
        assert f"{contender.run.error[-1]:.5f}" in page
    assert f"{told.limits.semi_supervised:.5f}" in page
    assert "λ_L, λ_U: ridge of" in page
    assert "mean ± standard deviation over 2 systems of 512 features" in page


def test_an_example_that_fails_is_shown(told, monkeypatch, tmp_path):
    with pytest.raises(SystemExit, match="ZeroDivisionError"):
        told_page(told, monkeypatch, tmp_path, "1 / 0", "print(1)")
    page = (tmp_path / "new" / "index.html").read_text(encoding="utf-8")
    assert "2 of 2 examples are still running; this page reloads" in page


def test_a_readme_needs_two_examples(tmp_path):
    (tmp_path / "README.md").write_text("# Nothing here\n")
    with pytest.raises(SystemExit, match="2 examples expected, found 0"):
        examples(tmp_path / "README.md")
