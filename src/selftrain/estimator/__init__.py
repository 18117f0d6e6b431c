"""Practice: a self-training classifier for real data, and advice whether to use it.

`SelfTrainingLinearClassifier` (`classifier.py`) follows the conventions of scikit-learn; its
default method is anchored soft self-training (`anchored.py`). `plan` (`planning/`) predicts its
error beforehand, `evaluation.py` measures it afterwards.
"""
