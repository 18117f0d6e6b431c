"""Measurements: the engines against other ways to the same numbers, as ratios taken in one run."""
