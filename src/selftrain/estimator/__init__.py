"""Practice: classifiers for few labels and many unlabelled samples, and what evaluates them.

`SelfTrainingLinearClassifier` (`classifier.py`) follows the conventions of scikit-learn; its
default method is anchored soft self-training (`anchored.py`). `plan` (`planning/`) says beforehand
whether it pays, `evaluation.py` measures it afterwards.
"""

from .evaluation import LabeledFolds, LearningCurve, labeled_learning_curve, labeled_scorer
from .settings import Settings

__all__ = [
    "LabeledFolds",
    "LearningCurve",
    "Settings",
    "labeled_learning_curve",
    "labeled_scorer",
]
