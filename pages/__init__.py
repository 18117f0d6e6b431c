"""Pages and pictures made in a clone: of `make run`, of the papers, of the documentation."""
