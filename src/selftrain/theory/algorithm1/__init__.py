"""The paper's own Algorithm 1, for comparison."""
