"""Clusters with a shape: the same theory, every mode of the noise with its own mean and variance of
the weights.
"""
