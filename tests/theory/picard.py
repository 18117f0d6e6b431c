"""The equations of section `shape` solved another way: damped substitution, with plain
Gauss-Legendre averages in numpy.

Nothing of the package is used: not its averages, not its rules, not its unknowns.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy.special import expit

_X, _W = np.polynomial.legendre.leggauss(160)
_X, _W = 9.0 * _X, 9.0 * _W * np.exp(-0.5 * (9.0 * _X) ** 2) / np.sqrt(2 * np.pi)


def prox(h: Any, p: Any, c: float) -> Any:
    """x + c (sigma(x) - p) = h by Newton's method from the flat side of the sigmoid."""
    x = np.zeros(np.broadcast(h, p).shape)
    for _ in range(200):
        s = expit(x)
        step = (x + c * (s - p) - h) / (1 + c * s * (1 - s))
        x = x - step
        if np.abs(step).max() < 1e-13 * (1 + np.abs(x).max()):
            break
    return x


def outer(edges: Any, centre: float, spread: float) -> tuple[Any, Any]:
    """Nodes and weights of a standard normal, split at logits where the label or the selection
    jumps.
    """
    cuts = [-9.0, *sorted(np.clip((np.array(edges) - centre) / spread, -9, 9)), 9.0]
    x, w = np.polynomial.legendre.leggauss(60)
    nodes, weights = [], []
    for low, high in itertools.pairwise(cuts):
        g = low + 0.5 * (high - low) * (1 + x)
        nodes.append(g)
        weights.append(0.5 * (high - low) * w * np.exp(-0.5 * g * g) / np.sqrt(2 * np.pi))
    return np.concatenate(nodes), np.concatenate(weights)


def picard(
    mean: Any,
    covariances: list[Any],
    sizes: list[tuple[float, float]],
    ridges: list[float],
    threshold: float = 0.0,
    sharpness: float = 1.0,
    fix_bias: bool = False,
    sweeps: int = 1500,
) -> list[dict[str, Any]]:
    """m, q of both classes (negative, positive) and B of every step; `sizes` are (alpha, rho)."""
    n = len(mean)
    old = None
    steps = []
    for (alpha, rho), ridge in zip(sizes, ridges, strict=True):
        shares = {-1: 1 - rho, 1: rho}
        shapes = dict(zip((-1, 1), covariances, strict=True))
        hats = {s: np.array([0.1, 0.1, 0.0]) for s in shapes}  # Q, chi, R
        hat_m, bias = 0.1, (0.0 if old is None else old["bias"])
        for _ in range(sweeps):
            green = np.linalg.inv(ridge * np.eye(n) + sum(hats[s][0] * shapes[s] for s in shapes))
            keep = green @ sum(hats[s][2] * shapes[s] for s in shapes)
            noise = green @ sum(hats[s][1] * shapes[s] for s in shapes) @ green / n
            e = hat_m * green @ mean
            v = noise
            if old is not None:
                e, v = e + keep @ old["e"], v + keep @ old["v"] @ keep.T
            m, pull, slope = mean @ e, 0.0, 0.0
            new, f_sum = {}, 0.0
            for s, shape in shapes.items():
                c = np.trace(shape @ green) / n
                q = e @ shape @ e + (shape * v).sum()
                if old is None:
                    h = s * m + bias + np.sqrt(q) * _X
                    p, weight, g = float(s > 0), _W, 0.0
                else:
                    q_old = old["e"] @ shape @ old["e"] + (shape * old["v"]).sum()
                    r = e @ shape @ old["e"] + (shape * (keep @ old["v"])).sum()
                    centre, limit = s * old["m"] + old["bias"], threshold * old["norm"]
                    nodes, weights = outer([-limit, 0.0, limit], centre, np.sqrt(q_old))
                    before = (centre + np.sqrt(q_old) * nodes)[:, None]
                    g = nodes[:, None]
                    weight = weights[:, None] * _W * (np.abs(before) > limit)
                    hard = np.isinf(sharpness)
                    p = (before > 0) * 1.0 if hard else expit(sharpness * before)
                    left = np.sqrt(max(q - r * r / q_old, 0.0))
                    h = s * m + bias + r / np.sqrt(q_old) * g + left * _X
                x = prox(h, p, c)
                f = expit(x) - p
                k = expit(x) * expit(-x) / (1 + c * expit(x) * expit(-x))
                part = alpha * shares[s]
                mean_k = (weight * k).sum()
                hat_r = 0.0
                if old is not None:
                    gf = (weight * g * f).sum()
                    hat_r = -part * (gf / np.sqrt(q_old) - r / q_old * mean_k)
                new[s] = np.array([part * mean_k, part * (weight * f * f).sum(), hat_r])
                pull += -part * s * (weight * f).sum()
                f_sum += part * (weight * f).sum()
                slope += part * mean_k
            change = max(float(np.abs(new[s] - hats[s]).max()) for s in shapes)
            change = max(change, abs(pull - hat_m))
            hats = {s: 0.5 * hats[s] + 0.5 * new[s] for s in shapes}
            hat_m = 0.5 * hat_m + 0.5 * pull
            if old is None or not fix_bias:
                bias -= 0.5 * f_sum / slope
                change = max(change, abs(f_sum))
            if change < 1e-12:
                break
        assert change < 1e-11, change
        old = {"e": e, "v": v, "m": m, "bias": bias}
        old["norm"] = np.sqrt(e @ e + np.trace(v)) * np.linalg.norm(mean)
        squares = [float(e @ shapes[s] @ e + (shapes[s] * v).sum()) for s in (-1, 1)]
        steps.append({"m": m, "squares": squares, "bias": bias})
    return steps
