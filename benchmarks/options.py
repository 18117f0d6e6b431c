"""The parser that every command of `python -m benchmarks` starts from."""

from __future__ import annotations

import argparse


def parser(command: str, documentation: str | None) -> argparse.ArgumentParser:
    """Return a parser whose help shows the docstring of a module without reflowing it."""
    return argparse.ArgumentParser(
        prog=f"python -m benchmarks {command}",
        description=documentation,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
