"""Averages of the logistic loss, compiled."""
