"""TabPFN, version 1: a network trained on synthetic tables that predicts from the labels in its
input. It uses the labelled rows only.

Its weights are in the source distribution of release 0.1, which does not install today; code that
reads them is that of 0.1.11, which would download them. Nothing is downloaded here: copy the file
once (docs/competitors.md has the commands), otherwise the comparison leaves TabPFN out.
"""

from __future__ import annotations

from contextlib import redirect_stderr
from functools import cache
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any, Self

import numpy as np

from selftrain.arrays import Array

WEIGHTS = "models_diff/prior_diff_real_checkpoint_n_0_epoch_42.cpkt"
MOST_COLUMNS, MOST_ROWS, MOST_CLASSES = 100, 1000, 10
"""Limits within which the network was trained."""

MEMBERS = 3
"""Passes whose logits are averaged, with columns shifted and transformed: the default of 0.1.11. On
three tasks 32 of them changed the balanced error by 0.0, 0.4 and -1.5 points."""


def why_not() -> str | None:
    """Return why TabPFN cannot be run; None if it can."""
    for package in ("torch", "tabpfn"):
        if find_spec(package) is None:
            return f"TabPFN is left out: the package {package} is not installed"
    if not (_folder() / WEIGHTS).exists():
        return f"TabPFN is left out: its weights are not in {_folder() / WEIGHTS}"
    return None


def fits(rows: Any, classes: Array) -> bool:
    """Return whether labelled rows with these classes are within the limits of the network."""
    small = rows.shape[1] <= MOST_COLUMNS and len(classes) <= MOST_ROWS
    return bool(small and len(np.unique(classes)) <= MOST_CLASSES)


class TabPFN:
    """The network by the conventions of scikit-learn, on raw columns."""

    def fit(self, rows: Array, classes: Array) -> Self:
        """Store the labelled rows."""
        self.classes_, self._codes = np.unique(classes, return_inverse=True)
        self._rows = rows
        return self

    def predict_proba(self, rows: Array) -> Array:
        """Return class probabilities."""
        model, configuration = _network()
        import torch
        from tabpfn.scripts.transformer_prediction_interface import (
            get_params_from_config,
            transformer_predict,
        )

        torch.set_num_threads(1)
        table = np.concatenate([self._rows, rows])
        codes = np.append(self._codes, np.zeros(len(rows)))  # of new rows they are not read
        with redirect_stderr(StringIO()):  # it switches warnings on, and causes some
            found = transformer_predict(
                model,
                torch.tensor(table).float().unsqueeze(1),
                torch.tensor(codes).float().unsqueeze(1),
                len(self._rows),
                inference_mode=True,
                feature_shift_decoder=True,
                N_ensemble_configurations=MEMBERS,
                **get_params_from_config(configuration),
            )
        return np.asarray(found.squeeze(0).numpy(), dtype=float)


@cache
def _network() -> tuple[Any, dict[str, Any]]:
    import typing

    from torch.nn.modules import transformer

    # tabpfn imports this name from torch, where it was until version 2.
    vars(transformer).setdefault("Optional", typing.Optional)
    from tabpfn.scripts.model_builder import load_model_only_inference

    fitted, configuration = load_model_only_inference(_folder(), WEIGHTS, "cpu")
    return fitted[2], configuration


def _folder() -> Path:
    spec = find_spec("tabpfn")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent
