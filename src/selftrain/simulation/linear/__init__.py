"""Ridge-regularised fits on any design matrix, and what they measure."""
