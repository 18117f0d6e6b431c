"""The page measured in a real browser: time from slider to picture, and memory over long use.

python benchmarks/explorer.py latency
python benchmarks/explorer.py soak --minutes 30
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from browser import chromium, serving, slide, visit

CONTROLS = (
    "alpha_l",
    "alpha_u",
    "rho",
    "delta",
    "lambda_l",
    "lambda_u",
    "threshold",
    "sharpness",
    "annealing",
)

TIMED = """
const [name, position, done] = arguments;
const input = document.getElementById(name + "-slider");
const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
const plot = document.querySelector("#chart .js-plotly-plot");
const begin = performance.now();
plot.once("plotly_afterplot", () => requestAnimationFrame(() => done(performance.now() - begin)));
set.call(input, String(position));
input.dispatchEvent(new Event("input", {bubbles: true}));
input.dispatchEvent(new Event("change", {bubbles: true}));
"""


def latency(browser: Any, address: str) -> None:
    """Slider to picture, for short and long runs, moving the recipe and the problem."""
    print("| steps | slider | median ms | 90th percentile ms |\n|---|---|---|---|")
    for steps in (16, 256):
        for name in ("lambda_u", "rho"):
            visit(browser, address, f"?steps={steps}&annealing=0&fix_bias=&rho=0.5&lambda_u=0.01")
            time.sleep(3)
            times = []
            for position in np.linspace(420, 560, 41).astype(int):
                times.append(browser.execute_async_script(TIMED, name, int(position)))
                time.sleep(0.1)
            middle, late = np.percentile(times[1:], [50, 90])
            print(f"| {steps} | {name} | {middle:.0f} | {late:.0f} |")


def soak(browser: Any, address: str, server: int, minutes: float) -> None:
    """Random sliders for a long time; the memory of the server's processes must not grow."""
    draw = np.random.default_rng(0)
    visit(browser, address)
    end, sizes = time.monotonic() + 60 * minutes, []
    moved = 0
    while time.monotonic() < end:
        for _ in range(200):
            slide(browser, str(draw.choice(CONTROLS)), int(draw.integers(0, 1001)))
            time.sleep(0.05)
        moved += 200
        sizes.append(_memory(server))
        if len(sizes) % 5 == 0:
            print(f"{moved} moves, server {sizes[-1]:.0f} MB", file=sys.stderr)
    half = len(sizes) // 2
    first, second = np.median(sizes[half // 2 : half + 1]), np.median(sizes[half:])
    print(f"{moved} moves in {minutes:g} minutes: {first:.0f} MB, then {second:.0f} MB (medians)")


def _memory(pid: int) -> float:
    """Megabytes of a process and its children."""
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return sum(member.memory_info().rss for member in family) / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=("latency", "soak"))
    parser.add_argument("--minutes", type=float, default=30.0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        with serving() as (address, server, _), chromium(place, place / "profile") as browser:
            if asked.what == "latency":
                latency(browser, address)
            else:
                soak(browser, address, server, asked.minutes)


if __name__ == "__main__":
    main()
