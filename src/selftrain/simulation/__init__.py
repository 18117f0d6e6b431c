"""Finite-size self-training: design matrices, the fit, engines for one seed, ensembles of seeds."""

from pathlib import Path

from ..kernels import forget_stale_kernels

forget_stale_kernels(Path(__file__).parent)
