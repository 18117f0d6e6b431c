"""Design matrices, known by their products."""
