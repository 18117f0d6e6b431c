"""The study that the defaults rest on: this classifier against what people use today, on real rows.

`tasks.py` has the data sets, those that methods were developed on apart from those they are judged
on; `rivals.py` the methods; `run.py` computes and keeps every run; `summary.py` makes the tables.
`python -m benchmarks.comparison` does all of it and continues where it was stopped.
"""
