"""Every step of long random runs, checked by equations that share no code with the package.

`robustness` draws thousands of problems and checks three steps of each. Here runs are longer (up to
sixty steps, over which weights shrink or grow by many orders of magnitude) and every step is
checked: by `independent`, and if that does not confirm the step, by `extended`. A step is a defect
if its distance from the root of its equations exceeds both 1e-8 and ten times its reported
accuracy.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

import numpy as np

from selftrain import solve
from selftrain.errors import StageError

from ..options import parser
from . import judging, random_problems

LONGEST = 60


def main(command: str, arguments: Sequence[str]) -> int:
    options = parser(command, __doc__)
    options.add_argument("--count", type=int, default=300)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--minutes", type=float, default=60.0, help="then it stops and says so")
    asked = options.parse_args(arguments)
    end = time.monotonic() + 60.0 * asked.minutes
    steps: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    furthest = 0.0
    index = 0
    while index < asked.count and time.monotonic() < end:
        problem, recipe = random_problems.draw(asked.seed, index)
        index += 1
        if not isinstance(problem.loss, str):
            continue
        rng = np.random.default_rng([asked.seed, index, 4])
        try:
            run = solve(problem.replace(steps=int(rng.integers(1, LONGEST + 1))), recipe)
        except StageError as error:
            ends[type(error).__name__] += 1
            continue
        ends["solved" if run.collapsed_at is None else "collapsed"] += 1
        for t in range(run.good_steps):
            said = float(run.stats.accuracy[t])
            verdict, word = judging.judged(*judging.equations(run, t), said)
            steps[word] += 1
            if word == "confirmed":
                furthest = max(furthest, verdict.distance)
            else:
                print(index - 1, t, word, f"{verdict.distance:.1e}, said {said:.1e}", flush=True)
    print(f"{index} problems: {dict(ends)}; steps: {dict(steps)}; furthest {furthest:.1e}")
    return int(steps["wrong"] > 0)
