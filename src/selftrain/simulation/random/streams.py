"""Random numbers by seed, step and purpose: those of one purpose do not depend on the others."""

from __future__ import annotations

import numpy as np

DATA, COLUMNS, LENGTHS, TEST, LOGITS, WEIGHTS, PROBES, LABELS = range(8)
"""Entries of a batch; columns of the frame and their lengths; test sample; rejected logits;
weights; probes; wrong labels.
"""


def stream(seed: int, step: int, purpose: int) -> np.random.SeedSequence:
    """Return the source of one purpose in one step of one seed, independent of all others."""
    return np.random.SeedSequence(seed, spawn_key=(step, purpose))


def generator(seed: int, step: int, purpose: int = DATA) -> np.random.Generator:
    """The random numbers of `stream`.

    >>> bool(generator(1, 2).random() == generator(1, 2).random())
    True
    """
    return np.random.Generator(np.random.Philox(stream(seed, step, purpose)))
