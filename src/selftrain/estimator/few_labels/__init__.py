"""`FewLabelClassifier` (`classifier.py`): what to do with few labels, by the kind of data.

`kinds.py` recognises the kind. Tables: three scores (`scores.py`) and their weighted sum
(`ensemble.py`). Images, embeddings, text: several self-trained models (`averaged.py`). More than
two classes: a graph of neighbours on top (`graph.py`).
"""
