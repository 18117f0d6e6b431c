"""Design matrices, defined by their products with vectors."""
