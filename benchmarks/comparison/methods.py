"""All methods of the comparison by name: competitors, this package, and the oracle."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

from selftrain.estimator import Settings
from selftrain.estimator.classifier import SelfTrainingLinearClassifier
from selftrain.estimator.few_labels.classifier import FewLabelClassifier

from ..speed.measure import timed
from .competitors import (
    Method,
    Prepared,
    Verdict,
    classic,
    fully_supervised,
    mixture_em,
    spreading,
    supervised,
    transductive_svm,
)
from .nonlinear import boosting, forest, implicitly_constrained, machine, self_trained_forest
from .tasks import Split


def _fitted(model: Any, split: Split) -> Verdict:
    """Fit one of our models to the raw columns."""
    model.fit(split.train, split.target)
    score = model.decision_function(split.test)
    probability = model.predict_proba(split.test)[:, 1]
    return Verdict((score > 0).astype(int), score, probability, float(model.shares_[1]))


def anchored(**settings: Any) -> Method:
    """Fit `SelfTrainingLinearClassifier` with balanced decisions."""

    def method(split: Split, rows: Prepared) -> Verdict:
        model = SelfTrainingLinearClassifier(
            class_weight="balanced", settings=Settings(**settings), random_state=0
        )
        return _fitted(model, split)

    return method


def few_labels(safe: bool = False) -> Method:
    """Fit `FewLabelClassifier`, which recognises the kind of data itself."""

    def method(split: Split, rows: Prepared) -> Verdict:
        return _fitted(FewLabelClassifier(safe=safe, random_state=0), split)

    return method


METHODS: dict[str, Method] = {
    "supervised": supervised(None),
    "supervised, balanced": supervised("balanced"),
    "supervised, balanced, default C": supervised("balanced", tuned=False),
    "random forest": forest(),
    "boosting": boosting(),
    "SVM": machine,
    "self-training .9": classic(None, 0.9),
    "self-training .75, balanced": classic("balanced", 0.75),
    "self-training .9, balanced": classic("balanced", 0.9),
    "self-training .95, balanced": classic("balanced", 0.95),
    "self-training .9, balanced, default C": classic("balanced", 0.9, tuned=False),
    "self-training over a forest": self_trained_forest,
    "implicit constraints (ICLS)": implicitly_constrained,
    "label spreading": spreading,
    "mixture by EM": mixture_em,
    "transductive SVM": transductive_svm,
    "anchored": anchored(),
    "few labels": few_labels(),
    "few labels, safe": few_labels(safe=True),
    "fully supervised": fully_supervised("balanced"),
}


def run(method: Method, split: Split, rows: Prepared) -> tuple[Verdict, float]:
    """Return the verdict of a method and the processor seconds it took."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        taken, verdict = timed(partial(method, split, rows))
    return verdict, taken
