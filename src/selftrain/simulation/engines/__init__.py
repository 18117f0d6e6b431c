"""How one seed runs: with explicit weights, or without any vector of N entries."""
