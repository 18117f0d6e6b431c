"""Draw the bars of the README, docs/images/bars.png, from the table of docs/comparison.md."""

from __future__ import annotations

import re
from pathlib import Path

from matplotlib.figure import Figure

DOCS = Path(__file__).parent
BARS = {
    "supervised, balanced": "supervised\nbaseline",
    "self-training .9, balanced": "scikit-learn's\nself-training",
    "few labels": "FewLabel\nClassifier",
    "fully supervised": "fully supervised\n(oracle)",
}
COLOURS = ("#999999", "#d55e00", "#0072b2", "#cccccc")


def errors() -> dict[str, float]:
    """Return the mean balanced errors at 40 labels, in percent, by row of the table."""
    rows = re.findall(
        r"^\| ([^|]+) \| [\d.]+ \| ([\d.]+) \| [\d.]+ \| [\d.–]+ \|",
        (DOCS / "comparison.md").read_text("utf-8"),
        flags=re.MULTILINE,
    )
    return {name.strip(): float(error) for name, error in rows}


def bars() -> Figure:
    """Draw one bar for each of four methods."""
    found = errors()
    figure = Figure(figsize=(6.4, 2.9), layout="constrained")
    ax = figure.subplots()
    drawn = ax.bar(list(BARS.values()), [found[name] for name in BARS], color=COLOURS)
    ax.bar_label(drawn, fmt="%.1f %%", padding=2)
    ax.set(ylabel="balanced error, %", ylim=(0, 25), title="22 real tasks, 40 labels each")
    ax.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    bars().savefig(DOCS / "images" / "bars.png", dpi=110)
