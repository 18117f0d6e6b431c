"""The examples of the pages print what the pages say."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from selftrain.paper.papers import PAPERS, paper
from selftrain.paper.registry import figures

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    "page",
    [
        "first-run",
        "imbalance",
        "domain-shift",
        "add-a-labeler",
        "limits",
        "label-noise",
        "classes",
        "protocols",
        "install",
        "faq",
        "index",
    ],
)
def test_examples(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```\s+```text\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == text.count("```python")
    names: dict[str, Any] = {}
    for code, printed in blocks:
        exec(compile(code, f"docs/{page}.md", "exec"), names)
        assert capsys.readouterr().out == printed


def test_no_page_is_lonely() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    pages = {path.stem for path in DOCS.glob("*.md")} - {"index"}
    assert pages <= set(
        re.findall(r"^([\w-]+)$", index, flags=re.MULTILINE)
    )  # its tables of contents
    shown = {path.rpartition(".")[0] for path in re.findall(r"\]\(([\w-]+\.md)", index)}
    assert pages - shown == {"changes", "contributing"}  # whose sources are linked instead


def test_contributors_are_sent_to_files_that_exist() -> None:
    root = DOCS.parent
    page = (root / "CONTRIBUTING.md").read_text("utf-8")
    named = set(re.findall(r"`((?:[\w-]+/)*[\w-]+\.(?:py|md|txt|toml))`", page))
    named |= set(re.findall(r"`(tests/[\w/]*)`", page))
    assert len(named) > 25
    homes = (
        root,
        root / "src" / "selftrain",
        root / "src" / "selftrain" / "plots",
        root / "tests/plots",
    )
    lost = {name for name in named if not any((home / name).exists() for home in homes)}
    assert lost == {"plots/NAME.py"}
    tour = (DOCS / "tour.md").read_text("utf-8")
    files = {path.name for path in (root / "src" / "selftrain").rglob("*.py")}
    assert {name.split("/")[-1] for name in re.findall(r"`([\w./]+\.py)`", tour)} <= files


def test_the_tutorial_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```(?:\s+```text\n(.*?)```)?", text, flags=re.DOTALL)
    assert len(blocks) == text.count("```python") > 5
    names: dict[str, Any] = {}
    for code, printed in blocks:
        exec(compile(code, "docs/tutorial.md", "exec"), names)
        assert capsys.readouterr().out == printed
    assert (tmp_path / "penguins.joblib").is_file()


def test_the_gallery_draws_its_pictures(tmp_path: Path) -> None:
    script = runpy.run_path(str(DOCS / "gallery.py"))
    script["draw"](tmp_path)
    shown = set(re.findall(r"\(images/gallery/(\w+\.png)\)", script["PAGE"].read_text("utf-8")))
    assert {path.name for path in tmp_path.glob("*.png")} == shown
    assert shown == {path.name for path in (DOCS / "images" / "gallery").glob("*.png")}
    assert all((tmp_path / name).stat().st_size > 8_000 for name in shown)


@pytest.mark.parametrize("name", PAPERS)
def test_the_index_of_figures_has_them_all(name: str) -> None:
    page = f"{paper(name).page}.md"
    rows = [
        line
        for line in (DOCS / "figures.md").read_text("utf-8").splitlines()
        if f"`]({page}" in line
    ]
    headings = set(re.findall(r"^## (.+)$", (DOCS / page).read_text("utf-8"), flags=re.M))
    for row, figure in zip(rows, figures([name]), strict=True):
        assert f"[`{figure.id}`]({page}#{figure.id})" in row
        assert figure.id in headings
        assert figure.title in row
        assert f"| {figure.place.number or 'ours'} | " in row


def test_the_page_of_errors_has_every_error() -> None:
    from selftrain import errors

    page = (DOCS / "errors.md").read_text("utf-8")
    classes = [
        name
        for name, one in vars(errors).items()
        if isinstance(one, type) and issubclass(one, errors.SelfTrainError)
    ]
    for name in classes:
        assert f"`{name}`" in page


def numbers(pattern: str, page: str) -> list[list[str]]:
    """The numbers N of a pattern, at every place of a page where it is found."""
    text = " ".join((DOCS / page).read_text("utf-8").split())
    number = re.escape(pattern).replace("N", r"(\d+\.?\d*)").replace("\\*\\*\\*", ".*?")
    return [list(found.groups()) for found in re.finditer(number, text)]


def test_tuned_times_in_continuous_time_are_those_of_the_figure() -> None:
    """The last row of the table against what the figure of the paper found."""
    [_, shown] = numbers("| 1024 | N | N | N | N | N | N |", "continuum.md")  # after annealed runs
    measured = numbers("tau_M at T = 1024 by rho: 0.2: N, 0.4: N, 0.5: N", "paper.md")
    assert len(measured) == 2  # squared, logistic
    for ours, figure in zip(shown, [*measured[0], *measured[1]], strict=True):
        assert float(ours) == pytest.approx(float(figure), rel=0.04)


def test_the_heuristics_alone_are_described_by_the_ablation() -> None:
    [said] = numbers(
        "N times that of supervised learning on all labels with neither, N with annealing, N with a"
        " fixed bias and N with both",
        "imbalance.md",
    )
    ways = "neither: N, annealing: N, bias fixed: N, both: N"
    assert said in numbers(f"rho = 0.4: {ways}", "paper.md")


def test_the_cost_of_a_gradient_is_the_measured_one() -> None:
    record = json.loads((DOCS / "benchmarks.json").read_text("utf-8"))
    lines = {line["what"]: line["figure"] for line in record["parts"]["gradients"]["lines"]}
    [[cost]] = numbers("costs N times the run", "gradients.md")
    assert float(cost) == pytest.approx(lines["gradient over forward"], abs=0.05)
    [said] = numbers("takes N times as long ***, N times with ***, N times over", "gradients.md")
    over = ("", ", threshold", ", annealing")
    for ratio, more in zip(said, over, strict=True):
        measured = lines[f"Nelder-Mead over ours: lambda_l, lambda_u{more}"]
        assert float(ratio) == pytest.approx(measured, abs=0.05)
