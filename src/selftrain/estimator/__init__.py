"""Practice: a self-training classifier for real rows, and the advice whether to use it.

`SelfTrainingLinearClassifier` (`classifier.py`) follows the conventions of scikit-learn; its
default method is anchored soft self-training (`anchored.py`). `plan` (`planning/`) predicts what
it will give before it is trusted, `evaluation.py` measures what it gave, and `comparison/` is
the study that the defaults rest on.
"""
