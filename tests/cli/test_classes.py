"""K classes on the command line: a Gram matrix and proportions in, tables and files out; every bad
input is one sentence that says what to do.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from selftrain import Clusters, Problem, Recipe, Trajectory, solve

GRAM = [[3.0, 0.4, -0.6], [0.4, 2.4, 0.2], [-0.6, 0.2, 2.0]]
NOISE = [[0.8, 0.2, 0.0], [0.0, 0.9, 0.1], [0.1, 0.1, 0.8]]
SHAPE = ("--alpha-l", 1.5, "--alpha-u", 2, "--delta", 0.6, "--steps", 1)
RIDGES = ("--lambda-l", 0.3, "--lambda-u", 0.2)
EXACT = (*SHAPE, *RIDGES, "--rho", ".5,.3,.2", "--loss", "squared")


@pytest.fixture
def gram(tmp_path: Path) -> Path:
    """The Gram matrix as a CSV file."""
    path = tmp_path / "gram.csv"
    path.write_text("\n".join(",".join(map(str, row)) for row in GRAM))
    return path


def test_json_is_the_run_of_the_api(selftrain: Any, gram: Path, tmp_path: Path) -> None:
    noise = tmp_path / "noise.json"
    noise.write_text(json.dumps(NOISE))
    ended = selftrain("solve", *EXACT, "--gram", gram, "--label-noise", noise, "--json")
    result = json.loads(ended.stdout)
    problem = Problem(
        alpha_l=1.5, alpha_u=2.0, rho=(0.5, 0.3, 0.2), steps=1, loss="squared",
        clusters=Clusters.from_gram(GRAM, 0.6), label_noise=NOISE,
    )  # fmt: skip
    run = solve(problem, Recipe(lambda_l=0.3, lambda_u=0.2))
    for t, row in enumerate(result["steps"]):
        for name in ("error", "class_errors", "m", "bias", "confusion"):
            np.testing.assert_allclose(row[name], getattr(run, name)[t], rtol=1e-9)
    assert Problem.from_dict(result["problem"]) == problem
    assert result["collapsed_at"] is result["collapsed_class"] is None
    assert 0 < result["limits"]["best_linear"] < run.error[-1]


def test_a_table_fits_eighty_columns_and_the_run_a_file(
    selftrain: Any, gram: Path, tmp_path: Path
) -> None:
    file, picture = tmp_path / "run.nc", tmp_path / "run.png"
    ended = selftrain("solve", *EXACT, "--gram", gram, "--save", file, "--plot", picture)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    (head,) = [line for line in lines if "recall of each class" in line]
    table = lines[lines.index(head) :][:4]
    assert max(map(len, table)) <= 81
    back = Trajectory.load(file)
    assert table[2].split()[1] == f"{back.error[0]:.6g}"
    assert f"{1 - back.class_errors[0, 0]:.3f}" in table[2]
    assert picture.stat().st_size > 1000


def test_runs_are_compared_with_their_theory(selftrain: Any, gram: Path) -> None:
    words = ("--features", 150, "--seeds", 4, "--probes", 0, "--compare")
    ended = selftrain("simulate", *EXACT, "--gram", gram, *words)
    assert ended.returncode == 0, ended.stderr
    assert "recall of each class" in ended.stdout
    assert ended.stdout.count("class_errors[") == 1  # the entry that is farthest off
    result = json.loads(selftrain("simulate", *EXACT, "--gram", gram, *words, "--json").stdout)
    assert np.shape(result["confusion" if "confusion" in result else "m"])[-2:] == (3, 3)
    assert np.shape(result["compare"]["z"]["m[0,1]"]) == (2,)


FILES = {
    "negative.csv": "1,2,0\n2,1,0\n0,0,1\n",
    "same.csv": "1,1,0\n1,1,0\n0,0,1\n",
    "words.csv": "a,b\nc,d\n",
    "ragged.csv": "1,2\n3\n",
    "skew.csv": "1,.5,0\n0,1,0\n0,0,1\n",
    "empty.csv": "",
}
BAD = [
    (("--rho", ".5,.3,.3"), "class proportions must sum to one; these sum to 1.1"),
    (("--gram", "negative.csv"), "positive semidefinite, as products of vectors are; its smallest"),
    (("--gram", "same.csv"), "classes 0 and 1 have the same mean.* merge them into one class or"),
    (("--gram", "skew.csv"), "must be symmetric"),
    (("--gram", "words.csv"), "gram must be a file with one row of numbers per line"),
    (("--gram", "ragged.csv"), "all of one length"),
    (("--gram", "empty.csv"), "must be a file with one row of numbers"),
    (("--gram", "nowhere.csv"), "cannot be read: No such file"),
    (("--label-noise", "0.7"), "share of wrong labels from 0 to below 0.6667"),
    (("--label-noise", "ragged.csv"), "label_noise must be a file with one row of numbers"),
    (("--rho", "0.5"), "rho has 2 proportions and clusters have 3 means: give as many of both"),
    (
        ("--tolerance", "1e-9", "--loss", "logistic"),
        "must be from 1e-07 to 1e-3 with data reuse or",
    ),
    (("--loss", "hinge"), "unknown loss"),
]


@pytest.mark.parametrize(("words", "sentence"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_bad_input_is_one_sentence(
    selftrain: Any, gram: Path, monkeypatch: pytest.MonkeyPatch, words: Any, sentence: str
) -> None:
    monkeypatch.chdir(gram.parent)
    for name, text in FILES.items():
        Path(name).write_text(text)
    ended = selftrain("solve", *EXACT, "--gram", gram, *words)
    assert ended.returncode == 2
    assert not ended.stdout
    (line,) = ended.stderr.splitlines()
    assert line.startswith("selftrain: ")
    with pytest.raises(AssertionError, match=sentence):
        raise AssertionError(line)


def test_missing_means_and_commands_of_two_classes(selftrain: Any, gram: Path) -> None:
    three = ("--rho", ".5,.3,.2")
    ended = selftrain("solve", *SHAPE, *three)
    assert "gram must be a file with the products of the means of 3 classes" in ended.stderr
    ended = selftrain("solve", "--alpha-l", 1, "--alpha-u", 2, "--steps", 1, *three, "--gram", gram)
    assert "missing --delta" in ended.stderr
    ended = selftrain("continuum", *SHAPE, *three, "--gram", gram)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "known for two classes only: use solve or simulate" in ended.stderr
    few = ("--alpha-l", 0.2, "--alpha-u", 2, "--delta", 0.6, "--steps", 1, "--features", 10)
    ended = selftrain("simulate", *few, *three, "--gram", gram, "--seeds", 2)
    assert "3 samples are needed, one per class, and 'labeled' would have 2" in ended.stderr
