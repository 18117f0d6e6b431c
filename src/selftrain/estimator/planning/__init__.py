"""Advice before a fit: is a candidate, such as self-training, better than a baseline on this data?

`plan.py` has the function. `models.py` fits both models with and without parts of the labels and
counts samples in four cells, by the two predicted classes; `posterior.py` turns the counts into
errors with intervals and an answer, `text.py` into words.
"""
