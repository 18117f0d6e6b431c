"""The `selftrain` command: one module per subcommand, the flags they share in `options`.

These modules import only typer at the top, so that `--help` answers at once; the engines are
imported when a command runs.
"""
