"""The advice before a fit: is self-training worth it on these rows?

`plan.py` is the verb. Three sources answer apart: labelled rows that were left out (`evidence.py`),
Gaussian rows of the same shape and size, and the theory of that shape (`surrogate.py`,
`prediction.py`). `advice.py` decides.
"""
