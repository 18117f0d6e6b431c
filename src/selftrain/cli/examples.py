"""What stands at the end of every help: commands to copy."""

EXAMPLES = {
    "solve": (
        "selftrain solve --alpha-l 0.5 --alpha-u 2 --rho 0.4 --delta 0.5625 --steps 16",
        "selftrain solve --config run.toml --json",
        "selftrain solve --data rows.csv --target y --labels 100 --batches 6x600",
    ),
    "simulate": (
        "selftrain simulate --alpha-l 0.5 --alpha-u 2 --rho 0.4 --delta 0.5625 --steps 3 "
        "--features 2000 --seeds 16 --compare",
    ),
    "optimize": (
        "selftrain optimize --alpha-l 0.5 --alpha-u 2 --rho 0.2 --delta 0.5625 --steps 16 "
        "--fix-bias --over lambda-l,lambda-u,annealing",
    ),
    "continuum": (
        "selftrain continuum --alpha-l 0.5 --alpha-u 2 --rho 0.4 --delta 0.5625 --steps 64 "
        "--lambda-u 0.01",
    ),
    "plan": ("selftrain plan rows.csv --target y", "selftrain plan rows.csv --target y --json"),
    "explore": ("selftrain explore", "selftrain explore runs/diagram --port 8060"),
    "warmup": ("selftrain warmup",),
    "bench": ("selftrain bench theory",),
    "paper": ("selftrain paper list", "selftrain paper run cosine --quick --out out/paper"),
    "sweep": (
        "selftrain sweep run grid.toml --store runs/diagram",
        "selftrain sweep export runs/diagram --to csv --out diagram.csv",
    ),
}


def epilog(verb: str) -> str:
    """The examples of a verb, one paragraph each."""
    return "\n\n".join(["Examples:", *(f"`{line}`" for line in EXAMPLES[verb])])
