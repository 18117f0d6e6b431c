"""What may be computed at a point, one module each, so that a stored value depends on its own
engine only.

Each is a function of a problem, a recipe, the names that are asked for, and options of its own,
which returns one number per name: the value at the end of the run. A name with `_path` behind it is
the whole run over t.
"""
