"""The `selftrain` command: one module a verb, the flags they share in `options`.

These modules import no more than typer at the top, so that `--help` answers at once; the
engines are imported when a verb runs.
"""
