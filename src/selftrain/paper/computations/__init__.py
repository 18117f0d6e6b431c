"""What the figures are made of: pure functions of plain parameters, as computations of a sweep.

They know nothing of how a figure looks, so that a change there leaves what was computed valid.
"""
