"""`selftrain warmup` compiles the kernels and says how far it is."""

from typer.testing import CliRunner

from selftrain.cli.main import app


def test_it_names_its_parts_and_ends() -> None:
    result = CliRunner().invoke(app, ["warmup"])
    assert result.exit_code == 0
    lines = result.stderr.splitlines()
    assert lines[0].startswith("compiling 1/5: the solver")
    assert lines[-1].startswith("ready in")
    assert result.stdout == ""
