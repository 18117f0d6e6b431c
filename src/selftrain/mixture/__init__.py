"""Gaussian clusters: from numbers or from data, their common axes, their best linear rule."""
