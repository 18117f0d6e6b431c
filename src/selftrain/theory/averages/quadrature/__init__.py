"""Rules for Gaussian averages: fixed rules, adaptive panels, the proximal map."""
