"""Probability laws of a solved run, Predictions 1 to 4 of the paper.

`WeightLaw`: the weights of one feature over the steps (`pred: rs generating functional w`,
`pred: w effective average`). `LogitLaw`: class, previous and trained logit of the training samples
of a step (`pred: u effective average`). `GaussianLogits`: the logits of fresh test samples.
"""

from .logits import GaussianLogits, LogitLaw
from .weight_law import WeightLaw

__all__ = ["GaussianLogits", "LogitLaw", "WeightLaw"]
