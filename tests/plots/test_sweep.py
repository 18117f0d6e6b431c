"""Maps of sweeps: contours under their labels, and titles of what was fixed and what optimised."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import xarray as xr

from selftrain import Problem, Recipe, sweep
from selftrain.plots.sweep import plot_sweep


def phase_map(**attributes: Any) -> xr.Dataset:
    rho, ridge = np.linspace(0.2, 0.5, 30), np.geomspace(3e-4, 0.3, 30)
    error = 0.1 + 0.3 * rho[:, None] + 0.005 * np.log(ridge) ** 2
    return xr.Dataset(
        {"error": (("rho", "lambda_u"), error)},
        coords={"rho": rho, "lambda_u": ridge},
        attrs=attributes,
    )


def contours_of(ax: Any) -> Any:
    (found,) = (one for one in ax.collections if getattr(one, "labelTexts", None))
    return found


def pieces(contours: Any, ax: Any) -> list[np.ndarray]:
    """The connected pieces of all contours, in pixels."""
    found: list[np.ndarray] = []
    for path in contours.get_paths():
        starts = np.flatnonzero(path.codes == 1) if path.codes is not None else [0]
        parts = np.split(path.vertices, starts)
        found += [ax.transData.transform(part) for part in parts if len(part)]
    return found


def test_a_label_lies_along_its_contour_on_a_log_axis() -> None:
    """Gap and rotation are those on the screen, not those that linear axes would have."""
    figure = plot_sweep(phase_map())
    figure.draw_without_rendering()
    ax = figure.axes[0]
    assert ax.get_xscale() == "log"
    contours = contours_of(ax)
    ends = np.vstack([line[[0, -1]] for line in pieces(contours, ax)])
    assert len(contours.labelTexts) >= 3
    for text in contours.labelTexts:
        apart = ends - ax.transData.transform(text.get_position())
        first, second = np.argsort(np.hypot(*apart.T))[:2]
        across, up = apart[first] - apart[second]
        assert np.hypot(across, up) > 30
        turned = text.get_rotation() - np.degrees(np.arctan2(up, across))
        assert abs((turned + 90) % 180 - 90) < 5


@pytest.mark.parametrize("options", [{}, {"over": ["lambda_l", "annealing"]}])
def test_a_title_gives_no_value_of_what_was_optimised(options: dict[str, Sequence[str]]) -> None:
    about = {
        "task": "optimize",
        "options": json.dumps(options),
        "problem": Problem(0.5, 2.0, 0.2, 0.5, steps=8).to_json(),
        "recipe": Recipe(lambda_l=0.07, annealing=0.1, fix_bias=True).to_json(),
    }
    title = plot_sweep(phase_map(**about)).get_suptitle()
    assert r"\lambda_L=" not in title
    assert ("a=0.1" in title) is not bool(options)
    assert "bias fixed" in title
    best = r"$\lambda_L$, $a$" if options else r"$\lambda_L$, $\lambda_U$"
    assert f"optimised at every point: {best}" in title


def test_the_title_of_a_sweep_of_optima_names_what_is_free() -> None:
    data = sweep(
        Problem(0.5, 2.0, 0.5, 0.5, steps=1),
        over={"delta": [0.4, 0.5]},
        task="optimize",
        options={"over": "lambda_u", "starts": 1},
        workers=0,
        progress=False,
    )
    title = data.plot("error").get_suptitle()
    assert r"optimised at every point: $\lambda_U$" in title
    assert r"\lambda_U=" not in title
    assert rf"\lambda_L={Recipe().lambda_l:g}" in title
