"""Results of the theory confirmed by code it does not share: other equations, finite systems."""
