r"""A batch that is used twice, by direct quadrature over its three fields; nothing here is shared
with the process.

The equations: $\chi = (\lambda + \hat Q)^{-1}$, $C = \chi(\hat m\hat m^\top + \hat\chi)\chi^\top$,
with the derivatives of the second slope in all three fields written out by hand. Steps 0 and 1 use
fresh rows and are known.
"""

import numpy as np
from scipy.optimize import root
from scipy.special import expit, roots_hermitenorm

from selftrain import Problem, Recipe, solve

ALPHA, RHO, DELTA, RIDGE = 2.2, 0.35, 0.6, 0.3


def prox(field: np.ndarray, target: np.ndarray, strength: float) -> np.ndarray:
    u = np.zeros_like(field)
    for _ in range(12):
        u -= (u + strength * (expit(u) - target) - field) / (1 + strength * expit(u) * expit(-u))
    return u


def second_step(first, nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """m, C, the response and B after the second use of the batch, from the run of the first one."""
    x, w = roots_hermitenorm(nodes)
    z = np.stack([axis.ravel() for axis in np.meshgrid(x, x, x, indexing="ij")])
    weight = np.prod([axis.ravel() for axis in np.meshgrid(w, w, w, indexing="ij")], axis=0)
    weight /= weight.sum()
    ridges = np.array([0.5, RIDGE, RIDGE])

    def state(y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        m_hat = np.append(first.m_hat, y[0])
        q_hat = np.diag([*first.q_hat, y[4]])
        q_hat[1, 0], q_hat[2, :2] = -first.r_hat[1], y[2:4]
        noise = np.diag([*first.chi_hat, y[6]])
        noise[1, 2] = noise[2, 1] = y[5]
        response = np.linalg.inv(np.diag(ridges) + q_hat)
        overlaps = response @ (np.outer(m_hat, m_hat) + noise) @ response.T
        return response @ m_hat, overlaps, response

    def gaps(y: np.ndarray) -> np.ndarray:
        m, overlaps, response = state(y)
        bias = np.append(first.bias, y[1])
        factor = np.linalg.cholesky(overlaps)
        c1, c2, c21 = DELTA * response[1, 1], DELTA * response[2, 2], DELTA * response[2, 1]
        new = np.zeros(7)
        for sign, share in ((1.0, RHO), (-1.0, 1 - RHO)):
            h0, h1, h2 = (sign * m + bias)[:, None] + np.sqrt(DELTA) * factor @ z
            p1 = expit(h0)
            u1 = prox(h1, p1, c1)
            f1, l1 = expit(u1) - p1, expit(u1) * expit(-u1)
            p2 = expit(u1)
            u2 = prox(h2 - c21 * f1, p2, c2)
            f2, l2 = expit(u2) - p2, expit(u2) * expit(-u2)
            slope = np.zeros((3, h0.size))
            for field in range(3):
                label = p1 * (1 - p1) * (field == 0)
                d1 = ((field == 1) + c1 * label) / (1 + c1 * l1)
                df1 = l1 * d1 - label
                label2 = p2 * (1 - p2) * d1
                d2 = ((field == 2) - c21 * df1 + c2 * label2) / (1 + c2 * l2)
                slope[field] = l2 * d2 - label2
            part = share * ALPHA * weight
            new[0] -= sign * part @ f2
            new[1] += part @ f2
            new[2:5] += DELTA * slope @ part
            new[5:7] += DELTA * np.array([part @ (f1 * f2), part @ f2**2])
        return new - np.where(np.arange(7) == 1, 0.0, y)

    start = np.array([0.1, first.bias[1], 0.0, -0.2, first.q_hat[1], 0.0, 0.02])
    near = start
    for _ in range(30):  # substitution leads near, Newton's method of scipy to the end
        move = gaps(near)
        move[1] *= -DELTA / (near[4] + move[4])
        near = near + 0.5 * move
    found = root(gaps, near, tol=1e-12)
    assert np.abs(gaps(found.x)).max() < 1e-10
    m, overlaps, response = state(found.x)
    return m, overlaps, response, float(found.x[1])


def test_a_batch_that_is_used_twice() -> None:
    common = {"alpha_l": 0.8, "alpha_u": ALPHA, "rho": RHO, "delta": DELTA}
    recipe = Recipe(lambda_l=0.5, lambda_u=RIDGE)
    first = solve(Problem(**common, steps=1), recipe)
    m, overlaps, response, bias = second_step(first, 14)
    finer = second_step(first, 18)
    assert np.abs(finer[1] - overlaps).max() < 1e-7
    run = solve(Problem(**common, steps=2, batches=("a", "a")), recipe, tolerance=1e-6)
    np.testing.assert_allclose(run.m, m, rtol=1e-6)
    np.testing.assert_allclose(run.overlaps, overlaps, rtol=1e-6)
    np.testing.assert_allclose(run.bias[2], bias, rtol=1e-6)
    np.testing.assert_allclose(run.response, response, rtol=1e-4, atol=1e-5)
