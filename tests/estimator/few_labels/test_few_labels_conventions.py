"""`FewLabelClassifier` follows scikit-learn's conventions: all of its checks."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from selftrain import FewLabelClassifier

USES_MINUS_ONE = {
    "check_classifiers_classes": "uses -1 as a class, which marks an unlabelled sample here"
}


@pytest.mark.filterwarnings("ignore:y has no unlabelled sample")
@pytest.mark.filterwarnings("ignore:class .* has 1 labelled sample")
@pytest.mark.filterwarnings("ignore:linear model and forest disagree")
@parametrize_with_checks(
    [FewLabelClassifier()], expected_failed_checks=lambda model: USES_MINUS_ONE
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
