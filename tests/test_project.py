"""The files around the code agree with each other: versions, bounds, workflows, what is shipped."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def pins(name: str) -> dict[str, str]:
    """Return the versions that a file of constraints pins."""
    lines = (ROOT / name).read_text("utf-8").splitlines()
    pairs = [line.split("==") for line in lines if not line.startswith("#")]
    return {package.lower().replace("_", "-"): version for package, version in pairs}


def test_the_lowest_versions_are_those_that_the_package_allows() -> None:
    bounds = {}
    for entry in map(Requirement, PROJECT["project"]["dependencies"]):
        (bound,) = entry.specifier
        assert bound.operator == ">="
        bounds[entry.name] = bound.version
    assert pins("constraints-lowest.txt") == bounds


def test_pinned_versions_are_within_the_bounds() -> None:
    pinned = pins("constraints.txt")
    for entry in map(Requirement, PROJECT["project"]["dependencies"]):
        assert pinned[entry.name] in entry.specifier, entry.name


def test_citation_and_changes_have_the_version_of_the_package() -> None:
    version = PROJECT["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.search(rf"^## {re.escape(version)} \(", _changes(), re.MULTILINE)


def test_every_release_has_its_date() -> None:
    heads = re.findall(r"^## (.*)$", _changes(), re.MULTILINE)
    released = [head for head in heads if head != "Unreleased"]
    assert released
    for head in released:
        assert re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d{2}-\d{2}\)", head), head


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_may_only_read_and_their_actions_are_pinned(path: Path) -> None:
    text = path.read_text("utf-8")
    assert re.search(r"^permissions:\n  contents: read\n", text, re.MULTILINE)
    used = re.findall(r"uses: (\S+)(.*)", text)
    assert used
    for action, comment in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), comment


def test_the_targets_that_workflows_make_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for path in WORKFLOWS:
        assert set(re.findall(r"\bmake ([\w-]+)", path.read_text("utf-8"))) <= targets, path.name


def test_the_wheel_has_the_package_alone() -> None:
    assert PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["src/selftrain"]


def _changes() -> str:
    return (ROOT / "CHANGELOG.md").read_text("utf-8")
