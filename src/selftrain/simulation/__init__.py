"""Finite-size self-training: design matrices, the fit, engines for one seed, ensembles of seeds."""
