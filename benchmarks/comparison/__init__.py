"""The study behind the defaults of the classifier: comparison with common methods on real data.

`tasks.py` has the data sets, in two parts for development and for confirmation; `competitors.py`
has the methods; `run.py` computes and stores every run; `summary.py` makes the tables. `tables.py`,
`plan.py` and `ask.py` are three further studies.
"""
