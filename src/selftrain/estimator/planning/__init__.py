"""Advice before a fit: is self-training worth it on this data?

`plan.py` has the function. Three sources answer independently: cross-validation on the labelled
samples (`evidence.py`), synthetic Gaussian data of the same covariance and size (`synthetic.py`),
and the theory (`prediction.py`). `advice.py` decides.
"""
