"""Derivatives of a run in everything it was given, by the adjoint method."""
