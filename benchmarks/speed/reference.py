"""The problem and the recipe of most parts: those of the paper's figures."""

from selftrain.problem import Problem
from selftrain.recipe import Recipe

PROBLEM = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=16)
RECIPE = Recipe(lambda_l=0.05, lambda_u=0.05)
