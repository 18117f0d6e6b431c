"""Examples at the end of every help text: commands to copy."""

EXAMPLES = {
    "": (
        "selftrain solve --alpha-l 0.5 --alpha-u 2 --rho 0.4 --delta 0.5625 --steps 16",
        "selftrain plan rows.csv --target y",
        "selftrain explore",
    ),
    "solve": (
        "selftrain solve --alpha-l 0.5 --alpha-u 2 --rho 0.4 --delta 0.5625 --steps 16",
        "selftrain solve --config run.toml --json",
        "selftrain solve --data rows.csv --target y --labels 100 --batches 6x600",
    ),
    "simulate": (
        "selftrain simulate --alpha-l 1 --alpha-u 2 --rho 0.4 --delta 1 --steps 3",
        "selftrain simulate --config run.toml --features 2000 --seeds 16 --compare",
    ),
    "optimize": (
        "selftrain optimize --alpha-l 1 --alpha-u 2 --rho 0.4 --delta 1 --steps 8",
        "selftrain optimize --config run.toml --over lambda-l,lambda-u,annealing",
    ),
    "continuum": ("selftrain continuum --alpha-l 1 --alpha-u 2 --rho 0.4 --delta 1 --steps 64",),
    "plan": (
        "selftrain plan rows.csv --target y",
        "selftrain plan rows.csv --target y --encode --json",
    ),
    "explore": ("selftrain explore", "selftrain explore runs/diagram.db --port 8060"),
    "warmup": ("selftrain warmup",),
    "paper": ("selftrain paper list", "selftrain paper run cosine --quick --out out/paper"),
    "paper list": ("selftrain paper list", "selftrain paper list --json"),
    "paper run": (
        "selftrain paper run --quick --out out/quick",
        "selftrain paper run cosine fig9 --out out/paper",
    ),
    "sweep": (
        "selftrain sweep run grid.toml --store runs/diagram.db",
        "selftrain sweep export runs/diagram.db --to csv --out diagram.csv",
    ),
    "sweep run": (
        "selftrain sweep run grid.toml --store runs/diagram.db",
        "selftrain sweep run grid.toml --scheduler tcp://127.0.0.1:8786",
    ),
    "sweep status": ("selftrain sweep status runs/diagram.db",),
    "sweep export": ("selftrain sweep export runs/diagram.db --to csv --out diagram.csv",),
    "sweep plot": ("selftrain sweep plot runs/diagram.db --out diagram.png",),
}


def epilog(command: str) -> str:
    """Return the examples of a command, one paragraph each."""
    return "\n\n".join(["Examples:", *(f"`{line}`" for line in EXAMPLES[command])])
