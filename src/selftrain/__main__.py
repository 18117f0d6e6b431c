"""`python -m selftrain` is the `selftrain` command."""

from .cli.main import run

if __name__ == "__main__":
    run()
