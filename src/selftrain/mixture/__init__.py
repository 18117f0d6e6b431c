"""Gaussian clusters: given or estimated from data, their modes, and their best linear rule."""
