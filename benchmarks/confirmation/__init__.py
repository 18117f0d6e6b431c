"""Checks of the theory by independent code: a second implementation of the equations, and finite
systems."""
