"""Reproducible random numbers: streams by seed, step and purpose, and normals by position."""
