"""Engines that run one seed: with explicit weight vectors, or without any vector of N entries."""
