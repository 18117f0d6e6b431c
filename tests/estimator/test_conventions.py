"""The classifier keeps scikit-learn's conventions: all of its checks, and the tools people use with
it.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from selftrain import SelfTrainingLinearClassifier

USES_MINUS_ONE = {
    "check_classifiers_classes": "uses -1 as a class, which marks a row without label here"
}


@pytest.mark.filterwarnings("ignore:y has no unlabelled sample")
@pytest.mark.filterwarnings("ignore:class .* has 1 labelled sample")
@parametrize_with_checks(
    [SelfTrainingLinearClassifier()], expected_failed_checks=lambda model: USES_MINUS_ONE
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
