"""Run the command line: `python -m selftrain` is the same as `selftrain`."""

from .cli.main import run

if __name__ == "__main__":
    run()
