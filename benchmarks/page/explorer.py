"""The page measured in a real browser.

python -m benchmarks explorer latency             time from slider to picture
python -m benchmarks explorer visitors            ten visitors who move sliders at once
python -m benchmarks explorer soak --minutes 30   memory while a script clicks at random
python -m benchmarks explorer picture FILE        the page on its first visit, as docs show it
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil

from ..options import parser
from .browser import act_at_random, chromium, click, resize, serving, visit, wait

TIMED = """
const [name, position, done] = arguments;
const input = document.getElementById(name + "-slider");
const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
const plot = document.querySelector("#chart");
const before = plot.data;
performance.clearResourceTimings();
const begin = performance.now();
// The first frame after new data were drawn: plotly draws within the task that takes them.
function look() {
  if (plot.data === before) return requestAnimationFrame(look);
  const seen = performance.now();
  const asked = performance.getEntriesByType("resource")
    .find((one) => one.name.endsWith("/answer"));
  const [sent, answered] = [asked.startTime, asked.responseEnd];
  done([sent - begin, answered - sent, seen - answered, seen - begin]);
}
requestAnimationFrame(look);
set.call(input, String(position));
input.dispatchEvent(new Event("input", {bubbles: true}));
input.dispatchEvent(new Event("change", {bubbles: true}));
"""

SPHERE = "?annealing=0&fix_bias=&rho=0.5&lambda_u=0.01"
SHAPE = SPHERE + "&shape=" + ",".join(f"{1 / (i + 2):.3g}:{2 / (i + 1):.3g}" for i in range(60))

PACE = 0.25
"""Seconds between two random actions: those of a fast visitor."""


def latency(browser: Any, address: str, server: int) -> None:
    """Measure the time from moving a slider (of the recipe or of the problem) to the new figure,
    for short and long runs.

    Prints milliseconds of wall-clock time, and of processor time of server and browser per move,
    which other load on the machine hardly changes.
    """
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(
        "| clusters | steps | slider | before request | server | drawing | whole | 90 % within"
        " | processor, server | browser |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    families = (server, browser.service.process.pid)
    for clusters, query in (("sphere", SPHERE), ("shape", SHAPE)):
        for steps in (16, 256):
            for name in ("lambda_u", "rho"):
                visit(browser, address, f"{query}&steps={steps}")
                time.sleep(1)
                moves = np.linspace(421, 561, 41).astype(int)
                _timed(browser, name, int(moves[0]))
                begun = [_processor(family) for family in families]
                times = np.array([_timed(browser, name, int(place)) for place in moves[1:]])
                used = [_processor(family) for family in families]
                spent = 1e3 * np.subtract(used, begun) / len(times)
                parts = " | ".join(f"{part:.0f}" for part in np.median(times, axis=0))
                late = np.percentile(times[:, -1], 90)
                both = " | ".join(f"{one:.0f}" for one in spent)
                row = f"| {clusters} | {steps} | {name} | {parts} | {late:.0f} | {both} |"
                print(row, flush=True)


def _timed(browser: Any, name: str, position: int) -> list[float]:
    time.sleep(0.1)
    parts: list[float] = browser.execute_async_script(TIMED, name, position)
    return parts


def _processor(process: int) -> float:
    """Return the seconds of processor time of a process and of all its descendants."""
    return sum(sum(member.cpu_times()[:2]) for member in _family(process))


def visitors(address: str, count: int = 10, moves: int = 20) -> None:
    """Measure the answers for several visitors at once, each of whom moves a slider of their own
    page as soon as the last answer has arrived.
    """
    times: list[float] = []

    def one(visitor: int) -> None:
        draw = np.random.default_rng(visitor)
        for number in range(1, moves + 1):
            texts = {"rho": f"{draw.uniform(0.1, 0.9):.4f}", "steps": "16"}
            state = {"texts": texts, "page": f"visitor {visitor}", "number": number}
            begin = time.perf_counter()
            _ask(address, state)
            times.append(1e3 * (time.perf_counter() - begin))

    all_of_them = [threading.Thread(target=one, args=(visitor,)) for visitor in range(count)]
    for visitor in all_of_them:
        visitor.start()
    for visitor in all_of_them:
        visitor.join()
    middle, late, last = np.percentile(times, [50, 90, 100])
    print(f"{count} visitors, {len(times)} of {count * moves} moves answered: ", end="")
    print(f"median {middle:.0f} ms, 90 % within {late:.0f} ms, slowest {last:.0f} ms")


def _ask(address: str, state: dict[str, Any]) -> None:
    """Send the request of a page; check that the answer contains a figure."""
    body, kind = json.dumps(state).encode(), {"Content-Type": "application/json"}
    sent = urllib.request.Request(address + "answer", body, kind)
    with urllib.request.urlopen(sent, timeout=60) as answer:
        assert json.load(answer)["figure"]["data"]


class Sample(NamedTuple):
    """Memory of the server's processes and of the page's objects, in megabytes, and the number of
    elements of the page.
    """

    server: float
    page: float
    elements: int


def soak(
    browser: Any, address: str, server: int, minutes: float, samples: int = 30
) -> list[Sample]:
    """Act at random for some minutes; return samples of memory, taken while no job runs."""
    draw = np.random.default_rng(0)
    visit(browser, address)
    resting = len(_family(server))
    begin, taken, acts = time.monotonic(), list[Sample](), 0
    for i in range(samples):
        while time.monotonic() < begin + 60 * minutes * (i + 1) / samples:
            act_at_random(browser, draw)
            acts += 1
            time.sleep(PACE)
        click(browser, "cancel")
        wait(browser, lambda: len(_family(server)) == resting, 60)
        taken.append(_sample(browser, server))
        passed = (time.monotonic() - begin) / 60
        print(f"{passed:5.1f} minutes, {acts} acts: {taken[-1]}", file=sys.stderr, flush=True)
    return taken


def _family(server: int) -> list[psutil.Process]:
    """Return a process and all its descendants; a running job adds one to those of the server."""
    return [psutil.Process(server), *psutil.Process(server).children(recursive=True)]


def _sample(browser: Any, server: int) -> Sample:
    """Return the memory after a garbage collection."""
    megabytes = sum(member.memory_info().rss for member in _family(server)) / 2**20
    browser.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    browser.execute_cdp_cmd("Performance.enable", {})
    metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    found = {one["name"]: one["value"] for one in metrics}
    return Sample(round(megabytes), round(found["JSHeapUsedSize"] / 2**20, 1), int(found["Nodes"]))


def grown(samples: list[Sample]) -> Sample:
    """Return ratios of the medians of the last third to those of the middle third; by then caches
    are full.
    """
    third = max(1, len(samples) // 3)
    early, late = (
        np.median(part, axis=0) for part in (samples[-2 * third : -third], samples[-third:])
    )
    return Sample(*(late / early).tolist())


def picture(browser: Any, address: str, file: Path) -> None:
    """Save a screenshot of the first visit, at the size of a small laptop."""
    resize(browser, 1280, 720)
    visit(browser, address)
    time.sleep(1)
    browser.save_screenshot(str(file))


def main(command: str, arguments: Sequence[str]) -> int:
    options = parser(command, __doc__)
    options.add_argument("what", choices=("latency", "visitors", "soak", "picture"))
    options.add_argument("file", nargs="?", type=Path, default=Path("docs/images/explorer.png"))
    options.add_argument("--minutes", type=float, default=30.0)
    asked = options.parse_args(arguments)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        with serving() as (address, server, _), chromium(place, place / "profile") as browser:
            if asked.what == "latency":
                latency(browser, address, server)
            elif asked.what == "visitors":
                visit(browser, address)
                visitors(address)
            elif asked.what == "picture":
                picture(browser, address, asked.file)
            else:
                samples = soak(browser, address, server, asked.minutes)
                print(f"first {samples[0]}, last {samples[-1]}, last third over middle third:")
                print(grown(samples))
    return 0
