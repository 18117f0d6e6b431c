"""Labelers: the targets they give, where those jump, and the registry."""

import math

import numpy as np
import pytest

from selftrain import Recipe, labelers
from selftrain.errors import InvalidInput
from selftrain.labelers import HardLabels, SoftLabels, get_labeler, register
from selftrain.losses import Logistic, Squared


def test_soft_labels_are_the_link_of_the_sharpened_logit():
    target = SoftLabels().target(np.array([-1.0, 0.0, 2.0]), 3.0, Logistic())
    expected = [1 / (1 + math.exp(3)), 0.5, 1 / (1 + math.exp(-6))]
    np.testing.assert_allclose(target, expected, rtol=1e-14)
    np.testing.assert_array_equal(SoftLabels().target(np.array([2.0]), 3.0, Squared()), [6.0])


@pytest.mark.parametrize(("labeler", "sharpness"), [(SoftLabels(), math.inf), (HardLabels(), 1.0)])
@pytest.mark.parametrize(
    ("loss", "classes"), [(Logistic(), [0.0, 0.0, 1.0]), (Squared(), [-1.0, -1.0, 1.0])]
)
def test_hard_labels_are_the_class_of_the_sign(labeler, sharpness, loss, classes):
    logit = np.array([-2.0, -1e-300, 1e-300])
    np.testing.assert_array_equal(labeler.target(logit, sharpness, loss), classes)
    assert labeler.jumps(sharpness) == (0.0,)


def test_sharp_soft_labels_tend_to_hard_ones():
    logit = np.array([-0.5, 0.5])
    soft = SoftLabels().target(logit, 200.0, Logistic())
    np.testing.assert_allclose(soft, [0, 1], atol=math.exp(-99))
    assert SoftLabels().jumps(200.0) == ()


class Halved(SoftLabels):
    name = "halved"


def test_registered_labeler_is_known_by_name(monkeypatch):
    monkeypatch.setattr(labelers, "_registry", dict(labelers._registry))
    mine = register(Halved())
    assert get_labeler("halved") is mine


def test_what_is_not_a_labeler_is_refused():
    with pytest.raises(InvalidInput, match=r"labeler must be .*attributes of"):
        register(SoftLabels)
    with pytest.raises(InvalidInput, match="unknown labeler; did you mean 'hard'"):
        get_labeler("hardd")


def test_labelers_compare_by_value() -> None:
    assert SoftLabels() == SoftLabels()
    assert HardLabels() == HardLabels() != SoftLabels()
    assert len({SoftLabels(), SoftLabels(), HardLabels()}) == 2
    assert Recipe(labeler=SoftLabels()) == Recipe(labeler=SoftLabels())
