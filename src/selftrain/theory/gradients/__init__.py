"""Derivatives of the results of a run in all its parameters, by the adjoint method."""
