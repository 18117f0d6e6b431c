"""Pictures and notebook cards of three classes."""

from __future__ import annotations

import numpy as np
import pytest

from selftrain import Clusters, Problem, Protocol, Recipe, simulate, solve
from selftrain.plots.clusters import spectra
from selftrain.protocol import Fit, PseudoLabels, SampleGroup, Use

CLUSTERS = Clusters.simplex(3, distance=1.7, delta=0.5)
PROBLEM = Problem(1.0, 3.0, (0.7, 0.2, 0.1), steps=1, loss="squared", clusters=CLUSTERS)


def test_runs_are_drawn_on_their_theory() -> None:
    run = solve(PROBLEM, Recipe(threshold=0.0))
    ensemble = simulate(PROBLEM, Recipe(), features=60, seeds=3, probes=0)
    axes = ensemble.plot(run).axes
    assert [len(ax.containers) for ax in axes[:4]] == [1, 1, 3, 3]  # error bars, one a class
    recall = axes[2].containers[1].lines[0].get_ydata()
    np.testing.assert_allclose(recall, 1 - ensemble.mean("class_errors")[:, 1])
    drawn = [line for line in axes[0].lines if line.get_linestyle() == "-"]
    np.testing.assert_array_equal(drawn[0].get_ydata(), run.error)


def test_cards_say_the_recall_of_every_class() -> None:
    run = solve(PROBLEM, Recipe())
    card = run._repr_html_()
    assert " ".join(f"{1 - error:.3f}" for error in run.class_errors[-1]) in card
    assert "<img" in PROBLEM._repr_html_()


def test_the_spectrum_of_means_is_that_around_their_middle() -> None:
    variances, squares = spectra(CLUSTERS)
    assert variances == pytest.approx(0.5)
    off = CLUSTERS.means - CLUSTERS.means.mean(axis=0)
    assert squares.sum() == pytest.approx((off**2).sum() / 3)
    assert len(CLUSTERS.plot().axes) >= 2


def test_two_classes_of_a_protocol_are_drawn_as_classes() -> None:
    samples = SampleGroup("samples", 2.0, 0.4, 0.5, label_noise=0.2)
    fits = (
        Fit(0.5, "logistic", (Use("samples"),)),
        Fit(0.5, "logistic", (Use("samples", 1.0, PseudoLabels(0)),)),
    )
    protocol = Protocol((samples,), fits)
    run = solve(protocol, tolerance=1e-3)
    ensemble = simulate(protocol, features=60, seeds=2, workers=0)
    assert "recall of each class" in run._repr_html_()
    assert "seeds" in ensemble._repr_html_()
    panels = [ax.get_title(loc="left") for ax in ensemble.plot(run).axes]
    assert panels[2:] == ["recall of each class", "share of each class among the labels"]


def test_two_classes_of_a_protocol_are_drawn_in_the_units_of_their_simulation() -> None:
    """The theory has two scores of half the logit: its q is doubled, as `compare` does it."""
    samples = SampleGroup("samples", 2.0, 0.4, 0.5)
    fits = (Fit(0.5, "logistic", (Use("samples"),)),)
    protocol = Protocol((samples,), fits)
    ensemble = simulate(protocol, features=2000, seeds=8, probes=0, workers=0)
    ax = ensemble.plot(solve(protocol, tolerance=1e-3), panel="size").axes[0]
    theory = next(line for line in ax.lines if line.get_label() == "theory").get_ydata()
    np.testing.assert_allclose(theory, ensemble.mean("q"), rtol=0.05)
