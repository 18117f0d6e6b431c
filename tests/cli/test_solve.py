"""`selftrain solve` as a script sees it: what is on stdout, what on stderr, and the exit code."""

import io
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from selftrain import Problem, Recipe, Trajectory, solve
from selftrain.cli.options import FLAGS, read_value
from selftrain.cli.output import StepRows, print_json
from selftrain.cli.solve import MOST_ROWS, rows_shown
from selftrain.fields import strict

CASES = json.loads(Path(__file__).parents[1].joinpath("reference/trajectories.json").read_text())

PROBLEM = ("--alpha-l", "0.5", "--alpha-u", "2", "--rho", "0.4", "--delta", "0.5625")
REFERENCE = (*PROBLEM, "--steps", "4", "--lambda-l", "0.05", "--lambda-u", "0.05")

CONFIG = """
[problem]
alpha_l = 0.5
alpha_u = 2
rho = 0.4
delta = 0.5625
steps = 4

[recipe]
lambda_l = 0.05
lambda_u = 0.05
"""


@pytest.fixture
def solve_json(selftrain):
    """Run `selftrain solve --json`; gives the exit code and the object, which must be strict
    JSON.
    """

    def call(*arguments):
        code, out, _ = selftrain("solve", *arguments, "--json")
        return code, json.loads(out, parse_constant=pytest.fail)

    return call


def refused(result, code=2):
    """The single line a failed call leaves on stderr."""
    assert result[0] == code
    assert result[1] == ""
    (line,) = result[2].splitlines()
    assert line.startswith("selftrain: ")
    return line.removeprefix("selftrain: ")


def in_a_process(*arguments, **options):
    command = [sys.executable, "-m", "selftrain", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize("name", CASES["cases"])
def test_json_agrees_with_an_independent_program(solve_json, name):
    case = CASES["cases"][name]
    arguments = []
    for field, value in case["params"].items():
        flag = "--" + field.replace("_", "-")
        arguments += [flag] * value if isinstance(value, bool) else [flag, str(value)]
    code, result = solve_json(*arguments)
    assert code == 0
    for expected in case["steps"]:
        row = result["steps"][expected["t"]]
        for key, value in expected.items():
            assert row[key] == (
                value if value is None else pytest.approx(value, rel=1e-9, abs=1e-12)
            )


def test_json_has_everything_under_the_names_of_the_api(solve_json):
    _, result = solve_json(*REFERENCE)
    assert set(result) == {
        *("steps", "bayes", "solver", "collapsed_at", "collapsed_class", "failure"),
        *("problem", "recipe", "version"),
    }
    assert [row["t"] for row in result["steps"]] == [0, 1, 2, 3, 4]
    wanted = {"q", "m", "bias", "chi", "overlap", "error", "cosine"}
    assert all(wanted <= set(row) for row in result["steps"])
    assert result["steps"][0]["overlap"] is None
    assert result["steps"][0]["cosine"] == pytest.approx(
        0.9514794354750726 / 2.1982404740039607**0.5
    )
    assert set(result["bayes"]) == {"semi_supervised", "all_labeled", "labeled_only"}
    assert result["solver"]["tolerance"] == 1e-10
    assert result["collapsed_at"] is None
    assert Problem.from_dict(result["problem"]).alpha_l == 0.5
    assert Recipe.from_dict(result["recipe"]) == Recipe(lambda_l=0.05, lambda_u=0.05)


def test_bayes_limits_of_the_documentation(solve_json):
    problem = ("--alpha-l", "0.5", "--alpha-u", "2", "--rho", "0.2", "--delta", "0.5625")
    _, result = solve_json(*problem, "--steps", "16")
    assert result["bayes"]["semi_supervised"] == pytest.approx(0.0687768961278, abs=1e-12)


def test_infinite_sharpness_is_written_as_text_and_collapse_as_null(solve_json):
    code, result = solve_json(*REFERENCE, "--steps", "16", "--sharpness", "inf")
    assert code == 0
    assert result["recipe"]["sharpness"] == "inf"
    collapse = result["collapsed_at"]
    assert collapse == 8
    rest = result["steps"][collapse:]
    assert {row["error"] for row in rest} == {0.4}
    assert {row["q"] for row in rest} == {None}


def test_table_says_a_collapse_in_words(selftrain):
    code, out, _ = selftrain("solve", *REFERENCE, "--steps", "16", "--sharpness", "inf")
    assert code == 0
    assert "Collapsed at step 8: the pseudo-labels are all of the negative class" in out


def test_table_shows_the_run_the_limits_and_how_it_was_solved(selftrain):
    code, out, err = selftrain("solve", *REFERENCE)
    assert code == 0
    header = next(line for line in out.splitlines() if "cosine" in line)
    assert header.split() == ["t", "q", "m", "B", "χ", "R", "error", "cosine"]
    first = next(line for line in out.splitlines() if line.split()[:1] == ["0"])
    assert first.split() == [
        *("0", "2.19824", "0.951479", "-0.483169", "15.4937", "-", "0.193827", "0.641744")
    ]
    assert "Bayes error: " in out
    assert err.startswith("Solved to 1e-10; ")
    assert "confirmed to" in err
    assert len(err.splitlines()) == 1


def test_one_step_is_singular(selftrain):
    _, _, err = selftrain("solve", *REFERENCE, "--steps", "0")
    assert "; 1 step confirmed to " in err


def test_table_shows_the_selected_fraction_when_there_is_a_threshold(selftrain):
    _, out, _ = selftrain("solve", *REFERENCE, "--threshold", "0.5")
    header = next(line for line in out.splitlines() if "cosine" in line)
    assert header.split()[-1] == "selected"


def test_long_runs_are_thinned_and_say_so(selftrain):
    _, out, _ = selftrain("solve", *REFERENCE, "--steps", "200", "--loss", "squared")
    assert "of 201 steps shown" in out
    shown = [
        line.split()[0] for line in out.splitlines() if line.split() and line.split()[0].isdigit()
    ]
    assert shown[0] == "0"
    assert "200" in shown
    assert len(shown) <= MOST_ROWS + 1


@pytest.mark.parametrize("steps", [MOST_ROWS, 100, 1024, 10**6])
def test_thinned_rows_hold_both_ends_and_the_collapse(steps):
    rows = rows_shown(steps, collapsed_at=31)
    assert len(rows) <= MOST_ROWS
    assert {0, 30, 31, steps} <= set(rows)
    assert rows == sorted(set(rows))


def test_a_list_gives_each_step_its_value(solve_json):
    _, constant = solve_json(*REFERENCE)
    _, listed = solve_json(
        *REFERENCE,
        "--lambda-u",
        "0.05,0.05,0.05,0.05",
        "--alpha-u",
        "2,2,2,2",
        "--sharpness",
        "1,1,1,1",
    )
    assert listed["recipe"]["lambda_u"] == [0.05] * 4
    for one, other in zip(constant["steps"], listed["steps"], strict=True):
        assert one["q"] == pytest.approx(other["q"], rel=1e-9)


def test_domain_shift_and_test_mixture(solve_json):
    shift = ("--rho-u", "0.3", "--delta-u", "0.5,0.5,0.5,0.6")
    _, default = solve_json(*REFERENCE, *shift)
    _, named = solve_json(*REFERENCE, *shift, "--test", "unlabeled")
    _, pair = solve_json(*REFERENCE, *shift, "--test", "0.3,0.6")
    _, labeled = solve_json(*REFERENCE, *shift, "--test", "labeled")
    assert default["steps"] == named["steps"] == pair["steps"]
    assert pair["problem"]["test"] == [0.3, 0.6]
    assert labeled["steps"][0]["error"] == pytest.approx(0.1938269756850229, rel=1e-9)
    assert labeled["steps"][0]["error"] != default["steps"][0]["error"]


def test_supervised_baseline_without_steps(solve_json):
    _, result = solve_json(*REFERENCE, "--steps", "0")
    (row,) = result["steps"]
    assert row["error"] == pytest.approx(0.1938269756850229, rel=1e-9)


@pytest.mark.parametrize(
    ("flag", "value", "told"),
    [
        ("--rho", "1.5", "rho must be strictly between 0 and 1, got 1.5"),
        ("--rho", "nan", "rho must be strictly between 0 and 1, got nan"),
        ("--rho", "half", "rho must be strictly between 0 and 1, got 'half'"),
        ("--delta", "0", "delta must be a finite number > 0"),
        ("--alpha-l", "-1", "alpha_l must be a finite number > 0"),
        ("--alpha-u", "0,1,1,1", "alpha_u[0] must be a finite number > 0"),
        ("--lambda-u", "0", "lambda_u must be a finite number > 0 (without a ridge"),
        (
            "--lambda-u",
            "1,2",
            "lambda_u = (1.0, 2.0): a sequence must have one entry per step: 4, not 2",
        ),
        ("--lambda-u", "1,,2,3", "lambda_u[1] must be a finite number > 0"),
        ("--threshold", "-1", "threshold must be a finite number >= 0"),
        ("--sharpness", "0", "sharpness must be a number > 0, inf for hard labels"),
        ("--steps", "-1", "steps must be a whole number"),
        ("--steps", "1.5", "steps must be a whole number"),
        ("--loss", "logistc", "loss = 'logistc': unknown loss; did you mean 'logistic'?"),
        ("--labeler", "sof", "labeler = 'sof': unknown labeler; did you mean 'soft'?"),
        ("--test", "train", "test must be "),
        ("--tolerance", "0", "tolerance must be"),
        ("--tolerance", "nan", "tolerance must be"),
        ("--tolerance", "tiny", "tolerance must be between 1e-13 and 1e-3, got 'tiny'"),
        ("--on-failure", "ignore", "Invalid value for '--on-failure': "),
        ("--plot", "figure.xyz", "plot must be a name ending in one of: png, pdf, svg"),
        ("--config", "no-such.toml", "config = 'no-such.toml': cannot be read: No such file"),
    ],
)
def test_bad_values_end_in_one_line_and_code_2(selftrain, flag, value, told):
    for form in ((), ("--json",)):
        assert refused(selftrain("solve", *REFERENCE, flag, value, *form)).startswith(told)


def test_missing_flags_are_named(selftrain):
    line = refused(selftrain("solve", "--alpha-l", "1", "--rho", "0.5"))
    assert line.startswith("missing --alpha-u, --delta, --steps: give them as flags, ")
    line = refused(selftrain("solve", *PROBLEM))
    assert line.startswith("missing --steps: give it as a flag, ")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("solve", "--alpha"), "No such option: --alpha"),
        (("solve", "surplus"), "Got unexpected extra argument"),
        (("slove",), "No such command 'slove'. Did you mean 'solve'?"),
    ],
)
def test_bad_usage_ends_in_one_line_and_code_2(selftrain, arguments, told):
    assert refused(selftrain(*arguments)).startswith(told)


def test_config_gives_what_the_flags_give_and_flags_win(solve_json, tmp_path):
    file = tmp_path / "run.toml"
    file.write_text(CONFIG)
    _, from_flags = solve_json(*REFERENCE)
    _, from_file = solve_json("--config", file)
    assert from_file == from_flags
    file.write_text(CONFIG.replace("0.4", "0.3") + "fix_bias = true\nsharpness = inf\n")
    _, overridden = solve_json(
        "--config", file, "--rho", "0.4", "--no-fix-bias", "--sharpness", "1"
    )
    assert overridden == from_flags


def test_config_made_by_the_words_themselves(solve_json, tmp_path):
    problem = Problem(alpha_l=0.5, alpha_u=[1, 2], rho=0.4, delta=0.5, steps=2, test=(0.3, 1))
    recipe = Recipe(sharpness=[1.0, math.inf], fix_bias=True)
    file = tmp_path / "run.toml"
    file.write_text(f"[problem]\n{problem.to_toml()}\n[recipe]\n{recipe.to_toml()}")
    _, result = solve_json("--config", file)
    assert Problem.from_dict(result["problem"]) == problem
    assert Recipe.from_dict(result["recipe"]) == recipe


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (CONFIG + "treshold = 1\n", "treshold = 1: unknown key; did you mean 'threshold'?"),
        (
            CONFIG.replace("alpha_l", "alhpa_l"),
            "alhpa_l = 0.5: unknown key; did you mean 'alpha_l'?",
        ),
        (CONFIG.replace("[recipe]", "[recipes]"), "unknown table; did you mean 'recipe'?"),
        ("alpha_l = 0.5\n" + CONFIG, "alpha_l = 0.5: this key belongs in the table [problem]"),
        (
            CONFIG.replace("steps = 4", "steps = 4\nlambda_u = 1"),
            "lambda_u = 1: this key belongs in the table [recipe]",
        ),
        (CONFIG + "rho = 0.3\n", "rho = 0.3: this key belongs in the table [problem]"),
        ("recipe = 3\n", "recipe must be a table [recipe], got 3"),
        ("[problem\n", "not TOML: "),
        (CONFIG.replace("rho = 0.4", "rho = 4"), "rho must be strictly between 0 and 1, got 4"),
        (CONFIG.replace("rho = 0.4", ""), "missing --rho: "),
    ],
)
def test_bad_config_ends_in_one_line_and_code_2(selftrain, tmp_path, text, told):
    file = tmp_path / "run.toml"
    file.write_text(text)
    assert told in refused(selftrain("solve", "--config", file))


def test_config_that_is_not_text(selftrain, tmp_path):
    file = tmp_path / "run.toml"
    file.write_bytes(b"\xff\xfe\x00")
    told = refused(selftrain("solve", "--config", file))
    assert told.startswith("config must be a file in UTF-8")


def test_config_may_be_json_and_other_endings_are_refused(solve_json, selftrain, tmp_path):
    words = {
        "problem": {"alpha_l": 0.5, "alpha_u": 2, "rho": 0.4, "delta": 0.5625, "steps": 2},
        "recipe": {"lambda_u": 0.1},
    }
    file = tmp_path / "run.json"
    file.write_text(json.dumps(words))
    _, result = solve_json("--config", file)
    assert result["recipe"]["lambda_u"] == 0.1
    file.write_text("[1, 2]")
    assert "JSON object" in refused(selftrain("solve", "--config", file))
    file.write_text("{")
    assert "not JSON" in refused(selftrain("solve", "--config", file))
    assert ".toml or .json" in refused(selftrain("solve", "--config", tmp_path / "run.yaml"))


@pytest.mark.parametrize("width", range(40, 110, 3))
def test_no_number_is_cut_off_however_narrow_the_terminal(capsys, width):
    """Rich would break a number with a sign behind it, or cut it where a column was taken out."""
    from rich.console import Console

    from selftrain.cli.output import print_table

    names = ("t", "q", "m", "B", "chi", "error", "R", "cosine")
    row = ("2", "0.988(10)", "-1.5 % at 1", "-0.596(51)", "0.43 %", "0.1905(88)", "22 %", "12.5 %")
    print_table(Console(width=width), names, [row])
    out = capsys.readouterr().out
    assert "\N{HORIZONTAL ELLIPSIS}" not in out
    shown = out.splitlines()[3]
    assert len(shown) <= width
    left = shown
    for cell in row:
        left = left.replace(cell, "", 1)
    assert not left.strip()


@pytest.mark.parametrize("width", [60, 80])
def test_a_table_fits_a_narrow_terminal_and_names_what_it_leaves_out(capsys, width):
    from rich.console import Console

    from selftrain.cli.output import print_table

    names = ("t", "q", "m", "B", "chi", "R", "one", "two", "error", "cosine")
    print_table(Console(width=width), names, [["0.123456789"] * 10])
    out, _, named = capsys.readouterr().out.partition("Not shown for lack of width:")
    assert max(map(len, out.splitlines())) <= width
    assert "0.123456789" in out
    assert "error" in out.splitlines()[1]
    assert "two" in named


def test_debug_shows_where_an_error_came_from(selftrain):
    code, _, error = selftrain("--debug", "solve", "--alpha-l", "-1")
    assert code == 2
    assert "Traceback" in error


def test_every_help_has_examples_that_parse(selftrain):
    import shlex

    from selftrain.cli.examples import EXAMPLES

    for name, lines in EXAMPLES.items():
        code, out, _ = selftrain(*name.split(), "-h")
        assert code == 0
        assert "Examples" in out
        for line in lines:
            program, *words = shlex.split(line)
            assert program == "selftrain"
            assert words[: len(name.split())] == name.split()


def test_a_step_without_solution_is_code_1_and_partial_gives_the_steps_before(
    selftrain, solve_json
):
    impossible = (*REFERENCE, "--threshold", "0,0,1e6,0")
    line = refused(selftrain("solve", *impossible), code=1)
    assert line.startswith("step 3: ")
    code, result = solve_json(*impossible, "--on-failure", "partial")
    assert code == 1
    assert result["failure"]["step"] == 3
    assert [row["q"] is None for row in result["steps"]] == [False, False, False, True, True]
    assert result["steps"][4]["error"] is None
    code, out, err = selftrain("solve", *impossible, "--on-failure", "partial")
    assert code == 1
    assert "Stopped at step 3: " in out
    assert err.splitlines()[-1].startswith("selftrain: step 3: ")


def test_plot_and_save_write_files(selftrain, tmp_path):
    figure, stored = tmp_path / "run.png", tmp_path / "run.nc"
    code, out, _ = selftrain("solve", *REFERENCE, "--plot", figure, "--save", stored, "--json")
    assert code == 0
    assert figure.read_bytes().startswith(b"\x89PNG")
    steps = json.loads(out)["steps"]
    assert Trajectory.load(stored).error.tolist() == [row["error"] for row in steps]


def test_what_was_written_is_told_on_stderr(selftrain, tmp_path):
    figure, stored = tmp_path / "run.svg", tmp_path / "run.nc"
    files = ("--plot", figure, "--save", stored)
    _, _, err = selftrain("solve", *REFERENCE, *files)
    assert err.splitlines()[1:] == [f"Figure: {figure}", f"Saved: {stored}"]
    _, _, err = selftrain("solve", *REFERENCE, *files, "--json")
    assert err == ""


@pytest.mark.parametrize("flag", ["--plot", "--save"])
def test_output_that_cannot_be_written_is_code_1(selftrain, tmp_path, flag):
    folder = tmp_path / "folder.png"
    folder.mkdir()
    assert "no such folder" in refused(
        selftrain("solve", *REFERENCE, flag, tmp_path / "missing" / "run.png"), code=1
    )
    assert "a file name is needed" in refused(selftrain("solve", *REFERENCE, flag, folder), code=1)


def test_full_device_is_one_line_and_code_1():
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    done = in_a_process("solve", *REFERENCE, "--save", "/dev/full", "--json")
    assert done.returncode == 1
    assert done.stderr == "selftrain: /dev/full: No space left on device\n"


def test_interrupt_is_code_130_without_a_traceback(selftrain, monkeypatch):
    def interrupted(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("selftrain.theory.solve.solve", interrupted)
    code, out, err = selftrain("solve", *REFERENCE)
    assert (code, out) == (130, "")
    assert "Traceback" not in err


def test_closed_pipe_is_silent():
    command = [sys.executable, "-m", "selftrain", "solve", *REFERENCE, "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == ""


def test_json_is_all_there_is_on_stdout():
    done = in_a_process("solve", *REFERENCE, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1
    assert len(json.loads(done.stdout)["steps"]) == 5


def test_version():
    done = in_a_process("--version")
    assert done.returncode == 0
    assert done.stdout.split()[0] == "selftrain"


def test_help_imports_no_numerics():
    heavy = "{'numpy', 'scipy', 'numba', 'pandas', 'xarray', 'matplotlib'}"
    code = f"import sys, selftrain.cli.main; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_help_names_every_field_of_the_words_with_their_defaults(selftrain):
    code, out, _ = selftrain("solve", "--help")
    assert code == 0
    for word, kind in (("problem", Problem), ("recipe", Recipe)):
        named = [name for name in kind.__dataclass_fields__ if not name.startswith("clusters")]
        named += ["gram"] if word == "problem" else []  # the flag of clusters
        assert sorted(flag.field for flag in FLAGS[word]) == sorted(named)
        for flag in FLAGS[word]:
            assert flag.option in out
    defaults = {flag.field: flag.default for flag in FLAGS["recipe"]}
    assert defaults.pop("fix_bias") == "no"
    assert Recipe(**{field: read_value(text) for field, text in defaults.items()}) == Recipe()


@pytest.mark.parametrize("name", ["solve", "simulate"])
def test_help_gives_switches_no_value(selftrain, name):
    _, out, _ = selftrain(name, "--help")
    shown = [line for line in out.splitlines() if "<bool>" in line]
    assert all("--help" in line for line in shown)


def test_no_command_shows_the_help_and_is_code_2(selftrain):
    code, out, err = selftrain()
    assert code == 2
    assert "solve" in out + err


def test_strict_keeps_numbers_and_replaces_what_json_cannot_say():
    plain = strict({"a": [1, 2.5, math.nan, -math.inf], "b": (True, None, "x")})
    assert plain == {"a": [1, 2.5, None, "-inf"], "b": [True, None, "x"]}


def test_every_kth_step_of_a_long_run(selftrain, tmp_path):
    code, out, _ = selftrain("solve", *REFERENCE, "--every", "3", "--json")
    assert code == 0
    told, whole = json.loads(out), json.loads(selftrain("solve", *REFERENCE, "--json")[1])
    assert told["steps"] == [whole["steps"][t] for t in (0, 3, 4)]
    assert told["solver"] == whole["solver"]
    assert "3 of 5 steps shown" in selftrain("solve", *REFERENCE, "--every", "3")[1]
    code, out, error = selftrain("solve", *REFERENCE, "--every", "0")
    assert (code, out) == (2, "")
    assert "a whole number of steps, 1 or more" in error
    code, _, error = selftrain(
        "solve", *REFERENCE, "--every", "2", "--save", str(tmp_path / "a.nc")
    )
    assert code == 2
    assert "must not be given with --plot or --save" in error


def test_rows_of_json_are_written_one_by_one(monkeypatch):
    """A million steps are never in memory as objects: each row is written before the next is
    made.
    """
    written = io.StringIO()
    monkeypatch.setattr(sys, "stdout", written)
    sizes = []

    class Steps:
        def __iter__(self):
            for t in range(3):
                sizes.append(len(written.getvalue()))
                yield t

    print_json(
        {"steps": StepRows({"t": Steps(), "q": [1.0, math.nan, math.inf]}), "none": StepRows({})}
    )
    assert sizes[0] < sizes[1] < sizes[2]
    told = json.loads(written.getvalue())
    assert told["steps"] == [{"t": 0, "q": 1.0}, {"t": 1, "q": None}, {"t": 2, "q": "inf"}]
    assert told["none"] == []


def test_a_config_with_a_byte_order_mark(selftrain, tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(CONFIG, encoding="utf-8-sig")
    code, out, error = selftrain("solve", "--config", str(path), "--json")
    assert code == 0, error
    assert len(json.loads(out)["steps"]) == 5
    assert Problem.from_toml("\ufeff" + Problem(0.5, 2.0, 0.4, 0.5, steps=1).to_toml()).steps == 1


def test_rows_used_again(selftrain):
    """The flags say what the API says, and the default accuracy is that of such runs."""
    flags = (*REFERENCE, "--loss", "squared", "--batches", "a,b,a,b", "--keep-labeled", "0,1,1,0.5")
    code, out, _ = selftrain("solve", *flags, "--json")
    told = json.loads(out)
    assert code == 0
    assert told["problem"]["batches"] == ["a", "b", "a", "b"]
    problem = Problem(
        0.5,
        2.0,
        0.4,
        0.5625,
        steps=4,
        loss="squared",
        batches=("a", "b", "a", "b"),
        keep_labeled=(0, 1, 1, 0.5),
    )
    run = solve(problem, Recipe(0.05, 0.05))
    assert [step["q"] for step in told["steps"]] == pytest.approx(run.q.tolist(), rel=1e-12)


def test_the_class_of_a_collapse_is_that_of_the_labels(selftrain, solve_json):
    """Labels of a batch that is all positive, from a model whose bias is negative."""
    flags = ("--alpha-l", 5, "--alpha-u", 2, "--rho", 0.4, "--delta", 0.1, "--steps", 1)
    flags += (
        "--rho-u",
        repr(1 - 1e-14),
        "--delta-u",
        0.01,
        "--test",
        "0.3,0.5",
        "--sharpness",
        "inf",
    )
    _, result = solve_json(*flags)
    assert result["collapsed_at"] == 1
    assert result["steps"][0]["bias"] < 0
    assert result["steps"][1]["error"] == pytest.approx(0.7)
    _, out, _ = selftrain("solve", *flags)
    assert "labels are all of the positive class" in " ".join(out.split())


def test_a_picture_on_a_full_disk_leaves_the_old_one_and_names_the_file(
    selftrain, tmp_path, monkeypatch
):
    from matplotlib.figure import Figure

    picture = tmp_path / "run.png"
    picture.write_bytes(b"the old one")

    def full(self, file, **options):
        Path(file).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full)
    flags = ("--alpha-l", 1, "--alpha-u", 2, "--rho", 0.4, "--delta", 0.5, "--steps", 1)
    code, _, error = selftrain("solve", *flags, "--plot", picture)
    assert code == 1
    assert f"{picture}: No space left on device" in error
    assert picture.read_bytes() == b"the old one"
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.png"]
