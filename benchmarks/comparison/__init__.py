"""The study behind the defaults of the classifier: real data, against what people use today.

`tasks.py` has the data sets, those for development apart from those for confirmation;
`competitors.py` the methods; `run.py` computes and stores every run; `summary.py` makes the tables.
`tables.py`, `plan.py` and `ask.py` are three further studies.
"""
