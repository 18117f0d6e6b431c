"""The quick report of `make run`, the page of the paper, and the pictures of the documentation."""
