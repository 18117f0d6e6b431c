"""Pages and pictures that are made in a clone: the first page of `make run`, the pages of the
papers, the pictures of the documentation."""
