"""Quadrature for Gaussian averages: fixed rules, adaptive panels, and the proximal map."""
