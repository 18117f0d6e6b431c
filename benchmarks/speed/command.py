"""The commands that measure speed: one for every part; `all` writes the page, `check` compares with
it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from selftrain.cli.output import print_json
from selftrain.errors import InvalidInput, nearest
from selftrain.runtime.files import write_text

from ..options import parser
from .check import changes, missing
from .measure import show
from .page import page
from .record import PARTS, Record, measure, merged, read


def main(command: str, arguments: Sequence[str]) -> int:
    """Run `all`, `check`, or one part."""
    run = {"all": _all, "check": _check}.get(command, _part)
    return run(command, arguments)


def _part(command: str, arguments: Sequence[str]) -> int:
    """Measure one part and show its lines, or print them as JSON."""
    module = import_module(f".{command}", __package__)
    options = parser(command, module.__doc__)
    options.add_argument("--json", action="store_true", help="one JSON object on stdout")
    if command == "simulation":
        options.add_argument("--out", type=Path, help="folder for the figures of growth and spread")
    asked = options.parse_args(arguments)
    if command == "simulation" and asked.out is not None:
        asked.out.mkdir(parents=True, exist_ok=True)
        lines = module.measurements(asked.out)
    else:
        lines = module.measurements()
    if asked.json:
        print_json({"bench": command, "lines": [line.to_dict() for line in lines]})
    else:
        show(lines)
    return 0


def _all(command: str, arguments: Sequence[str]) -> int:
    """Measure parts and write one page (half an hour, on a machine that does nothing else)."""
    options = _with_parts(command, _all.__doc__)
    options.add_argument(
        "--out", type=Path, default=Path("docs"), help="folder of benchmarks.md and benchmarks.json"
    )
    asked = options.parse_args(arguments)
    file = asked.out / "benchmarks.json"
    if not asked.out.is_dir():
        raise InvalidInput("out", str(asked.out), "no such folder")
    old = _record(file) if file.is_file() else None

    def write(record: Record) -> None:
        whole = merged(old, record)
        write_text(file, json.dumps(whole, indent=1, allow_nan=False) + "\n")
        write_text(asked.out / "benchmarks.md", page(whole))

    record = measure(_in_order(asked.parts), write, _notice)
    _notice(f"{asked.out / 'benchmarks.md'} is written")
    return int(any("failed" in found for found in record["parts"].values()))


def _check(command: str, arguments: Sequence[str]) -> int:
    """Measure again and name what became slower by more than its noise; exit code 1 if any did."""
    options = _with_parts(command, _check.__doc__)
    options.add_argument(
        "--against", type=Path, default=Path("docs/benchmarks.json"), help="record to compare with"
    )
    asked = options.parse_args(arguments)
    old = _record(asked.against)
    new = measure([part for part in _in_order(asked.parts) if part in old["parts"]], notice=_notice)
    compared = changes(old, new)
    slower = [change for change in compared if change.slower]
    failed = [f"{part} {one['failed']}" for part, one in new["parts"].items() if "failed" in one]
    gone = [f"no longer measured: {what}" for what in missing(old, new)] if not failed else []
    for line in [*map(str, slower), *failed, *gone]:
        print(line)
    print(f"{len(compared)} figures compared, {len(slower)} slower by more than their noise")
    return int(bool(slower or failed or gone))


def _with_parts(command: str, documentation: str | None) -> argparse.ArgumentParser:
    options = parser(command, documentation)
    options.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    return options


def _in_order(parts: Sequence[str]) -> list[str]:
    """Return the parts that are asked for (all if none is named), in the order of measurement."""
    for part in parts:
        if part not in PARTS:
            raise InvalidInput("part", part, f"unknown part; {nearest(part, PARTS)}")
    return [part for part in PARTS if not parts or part in parts]


def _record(path: Path) -> Record:
    """Read a record of earlier measurements."""
    try:
        return read(path)
    except FileNotFoundError:
        raise InvalidInput("record", str(path), "no such file; `make bench` writes it") from None
    except ValueError as error:
        raise InvalidInput("record", str(path), f"not a record of benchmarks ({error})") from None


def _notice(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
