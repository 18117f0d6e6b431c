"""Finite-size self-training: design matrices, fits, engines for one seed, ensembles of seeds."""
