"""Pages a person reads: of `make run`, `make report` and the paper; pictures of the docs."""
