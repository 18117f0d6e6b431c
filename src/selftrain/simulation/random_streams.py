"""Independent random streams by seed, step and purpose."""

from __future__ import annotations

import numpy as np

DATA, COLUMNS, LENGTHS, TEST, LOGITS, WEIGHTS, PROBES, LABELS = range(8)
"""Purposes: entries of a batch; columns of the frame; their lengths; test sample; logits of
rejected samples; weights; probes; wrong labels.
"""


def stream(seed: int, step: int, purpose: int) -> np.random.SeedSequence:
    """Return the seed sequence of a purpose in a step of a seed, independent of all others."""
    return np.random.SeedSequence(seed, spawn_key=(step, purpose))


def generator(seed: int, step: int, purpose: int = DATA) -> np.random.Generator:
    """Return a random generator for `stream`.

    >>> bool(generator(1, 2).random() == generator(1, 2).random())
    True
    """
    return np.random.Generator(np.random.Philox(stream(seed, step, purpose)))
