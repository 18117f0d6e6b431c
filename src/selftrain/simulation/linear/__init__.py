"""Ridge-regularised fits on any design matrix, and their susceptibility."""
