"""Small real data sets to try things on, loaded as in scikit-learn; nothing is downloaded.

Images (`load_digits`), measurements (`load_breast_cancer`), and a table with text and missing
values (`load_penguins`). All classes are known; `hide_labels` hides most of them, to get a
semi-supervised problem.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets as sklearn_datasets
from sklearn.utils import Bunch, check_random_state

from ..errors import InvalidInput

__all__ = ["hide_labels", "load_breast_cancer", "load_digits", "load_penguins"]

_DIGITS = """Images of handwritten digits, 8 x 8 pixels of 0 to 16, by 43 people.

E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning
Repository, 1998, doi:10.24432/C50P49: the test set, as scikit-learn ships it.
"""

_BREAST_CANCER = """Thirty measurements of cell nuclei in images of breast tumours.

W. Wolberg, O. Mangasarian, N. Street and W. Street, Breast Cancer Wisconsin (Diagnostic), UCI
Machine Learning Repository, 1993, doi:10.24432/C5DW2B, as scikit-learn ships it.
"""

_PENGUINS = """Penguins of three islands near Palmer Station, Antarctica, 2007 to 2009.

Bill, flipper and body mass, with the island and the sex as text; 19 values are missing. K. B.
Gorman, T. D. Williams and W. R. Fraser, PLoS ONE 9(3), e90081, 2014; as tidied by A. M. Horst,
A. P. Hill and K. B. Gorman, palmerpenguins, 2020.
"""


def load_digits(*, return_X_y: bool = False) -> Any:
    """Load 1,797 images of handwritten digits: 64 pixels, ten classes.

    Arguments:
        return_X_y: return only the features (a DataFrame) and the classes (a Series).

    Returns:
        A `sklearn.utils.Bunch` with `data`, `target`, `feature_names`, `target_names`, `DESCR` and
        `licence`.

    >>> X, digit = load_digits(return_X_y=True)
    >>> X.shape, digit.nunique()
    ((1797, 64), 10)
    """
    source = sklearn_datasets.load_digits(as_frame=True)
    return _bunch(source.data, source.target, _DIGITS, "CC BY 4.0", return_X_y)


def load_breast_cancer(*, return_X_y: bool = False) -> Any:
    """Load 569 breast tumours: 30 measurements, the classes "malignant" and "benign".

    Arguments and result as for `load_digits`.

    >>> X, kind = load_breast_cancer(return_X_y=True)
    >>> X.shape, kind.value_counts().to_dict()
    ((569, 30), {'benign': 357, 'malignant': 212})
    """
    source = sklearn_datasets.load_breast_cancer(as_frame=True)
    names = dict(enumerate(source.target_names.tolist()))
    return _bunch(source.data, source.target.map(names), _BREAST_CANCER, "CC BY 4.0", return_X_y)


def load_penguins(*, return_X_y: bool = False) -> Any:
    """Load 344 penguins of three species: a table of numbers and text with missing values.

    Arguments and result as for `load_digits`.

    >>> X, species = load_penguins(return_X_y=True)
    >>> list(X.columns[:3]), int(X.isna().sum().sum()), species.nunique()
    (['island', 'bill_length_mm', 'bill_depth_mm'], 19, 3)
    """
    table = pd.read_csv(Path(__file__).with_name("penguins.csv"))
    X, y = table.drop(columns="species"), table["species"].rename("target")
    return _bunch(X, y, _PENGUINS, "CC0 1.0", return_X_y)


def hide_labels(y: Any, labels: int, *, unlabeled: Any = -1, random_state: Any = 0) -> pd.Series:
    """Return a copy of the classes with all but a random subset replaced by `unlabeled`.

    Arguments:
        y: the class of each sample.
        labels: number of classes that stay known, at least one.
        unlabeled: the marker that replaces the others.
        random_state: seed of the draw, or a `numpy.random.RandomState`.

    >>> _, kind = load_breast_cancer(return_X_y=True)
    >>> y = hide_labels(kind, 40)
    >>> int((y == -1).sum())
    529
    """
    classes = pd.Series(y)
    if isinstance(labels, bool) or not isinstance(labels, (int, np.integer)):
        raise InvalidInput("labels", labels, "must be a whole number")
    if not 1 <= labels <= len(classes):
        raise InvalidInput("labels", labels, f"must be between 1 and {len(classes)}")
    known = check_random_state(random_state).permutation(len(classes))[:labels]
    return classes.where(np.isin(np.arange(len(classes)), known), unlabeled)


def _bunch(X: pd.DataFrame, y: pd.Series, description: str, licence: str, only: bool) -> Any:
    if only:
        return X, y
    return Bunch(
        data=X,
        target=y,
        feature_names=list(X.columns),
        target_names=sorted(y.unique().tolist()),
        DESCR=f"{description}\nLicence: {licence}.\n",
        licence=licence,
    )
