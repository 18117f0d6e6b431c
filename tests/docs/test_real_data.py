"""The page on real data runs from its file to its curves, and its commands are commands."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from selftrain import Clusters, Problem, Recipe, solve
from selftrain.cli import main
from selftrain.theory.laws.logits import fields_of

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "real-data.md").read_text("utf-8")
EQUATIONS = (DOCS / "covariances.md").read_text("utf-8")


def test_examples_and_commands_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(compile(block, "docs/real-data.md", "exec"), names)
    theory, synthetic, real = names["theory"], names["synthetic"], names["real"]
    gap = synthetic.mean("error") - theory.error
    assert (np.abs(gap) < 5 * synthetic.sem("error")).all()
    assert real.method == "rows"
    assert np.abs(real.mean("error") / theory.error - 1).max() < 0.25
    assert names["limit"] < names["fully_supervised"] < names["best"].error
    for line in re.findall(r"^selftrain .*$", PAGE, flags=re.MULTILINE):
        if "--data" in line:
            monkeypatch.setattr(sys, "argv", shlex.split(line))
            with pytest.raises(SystemExit) as ended:
                main.run()
            assert not ended.value.code, line
    assert (tmp_path / "run.png").is_file()
    assert (tmp_path / "runs.png").is_file()


def test_images_are_there() -> None:
    for image in re.findall(r"\]\((images/[\w.-]+)\)", PAGE):
        assert (DOCS / image).is_file(), image


def random_clusters(pair: bool) -> tuple[np.ndarray, list[np.ndarray], Clusters]:
    """Twelve features with rotated covariances, one for both classes or one for each."""
    random = np.random.default_rng(3)
    mean = 1.4 * random.normal(size=12) / np.sqrt(12)
    turned = []
    for _ in range(2):
        turn = np.linalg.qr(random.normal(size=(12, 12)))[0]
        turned.append((turn * np.exp(0.7 * random.normal(size=12))) @ turn.T)
    matrices = turned if pair else [turned[0]] * 2
    return mean, matrices, Clusters(mean, tuple(matrices) if pair else matrices[0])


@pytest.mark.parametrize("recipe", [Recipe(0.2, 0.3), Recipe(0.1, 0.2, 0.0, 1.5, fix_bias=True)])
@pytest.mark.parametrize("pair", [False, True])
def test_solved_runs_obey_the_equations_of_the_page(pair: bool, recipe: Recipe) -> None:
    """The numpy form of the equations, as printed, on the conjugates and laws of solved runs."""
    names: dict[str, Any] = {}
    (block,) = re.findall(r"```python\n(.*?)```", EQUATIONS, re.DOTALL)
    exec(compile(block, "docs/covariances.md", "exec"), names)
    mean, matrices, clusters = random_clusters(pair)
    problem = Problem(1.3, 2.6, 0.35, rho_u=0.4, clusters=clusters, steps=2)
    run = solve(problem, recipe)
    old, labelling = (np.zeros(12), np.zeros((12, 12))), None
    for t in range(3):
        groups = 2 if pair else 1
        hat_m, _, *rest = run.unknowns[t]
        tilt, log_q, log_chi = np.reshape(rest, (3, groups))
        hat_q, hat_chi = np.exp(log_q), np.exp(log_chi)
        hat_r = run.gammas[t] * hat_q - tilt if t else np.zeros(groups)
        hats = (hat_m, hat_q, hat_chi, hat_r)
        ridge = recipe.lambda_u if t else recipe.lambda_l
        law, seen = names["weights"](mean, matrices[:groups], ridge, hats, old)
        m, q, overlaps, strengths = seen
        assert m == pytest.approx(run.m[t], rel=1e-9)
        np.testing.assert_allclose(q, run.logit_variances[t, :groups], rtol=1e-9)
        np.testing.assert_allclose(strengths, fields_of(run, t).strengths[:groups], rtol=1e-9)
        np.testing.assert_allclose(law[0], run.weights.vector(t), rtol=1e-8, atol=1e-10)
        assert law[0] @ law[0] + np.trace(law[1]) == pytest.approx(run.q[t], rel=1e-9)
        both = (m, *(list(part) * (3 - groups) for part in (q, overlaps, strengths)))
        alpha, rho = (2.6, 0.4) if t else (1.3, 0.35)
        found, residual = names["conjugates"](
            alpha, rho, both, run.bias[t], labelling, recipe.sharpness
        )
        assert found[0] == pytest.approx(hat_m, rel=1e-8)
        for expected, parts in zip((hat_q, hat_chi, hat_r), found[1:], strict=True):
            totals = parts if pair else [sum(parts)]
            np.testing.assert_allclose(totals, expected, rtol=1e-8, atol=1e-12)
        if t and recipe.fix_bias:
            assert run.bias[t] == pytest.approx(run.bias[0], rel=1e-14)
            assert abs(residual) > 1e-3
        else:
            assert abs(residual) < 1e-9
        old, labelling = law, (m, both[1], run.bias[t])


def test_modes_of_the_page_are_its_matrices() -> None:
    """The sums over modes, as printed, against the mean, norm and noise of a solved run."""
    mean, matrices, clusters = random_clusters(pair=False)
    spectrum, basis = np.linalg.eigh(matrices[0])
    along, n = basis.T @ mean, 12
    run = solve(Problem(1.3, 2.6, 0.35, clusters=clusters, steps=1), Recipe(0.2, 0.3))
    b = v = np.zeros(n)
    for t, ridge in enumerate((0.2, 0.3)):
        hat_m, _, tilt, log_q, log_chi = run.unknowns[t]
        hat_q, hat_chi = np.exp(log_q), np.exp(log_chi)
        hat_r = run.gammas[t] * hat_q - tilt if t else 0.0
        gain, old_b, old_v = 1 / (ridge + hat_q * spectrum), b, v
        b = (hat_m * along + hat_r * spectrum * old_b) * gain
        v = (hat_r**2 * spectrum**2 * old_v + hat_chi * spectrum / n) * gain**2
        assert along @ b == pytest.approx(run.m[t], rel=1e-9)
        assert spectrum @ (b**2 + v) == pytest.approx(run.logit_variances[t, 0], rel=1e-9)
        assert spectrum @ gain / n == pytest.approx(fields_of(run, t).strengths[0], rel=1e-9)
        np.testing.assert_allclose(basis @ b, run.weights.vector(t), rtol=1e-8, atol=1e-10)
    overlap = (b @ old_b) + (hat_r * spectrum * old_v * gain).sum()
    assert overlap == pytest.approx(run.overlap[1], rel=1e-9)
