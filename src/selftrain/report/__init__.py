"""The quick report of `make run`: figures and tables that show in a minute what the package finds.

One module a finding: it computes the numbers; `selftrain.plots` draws them.
"""
