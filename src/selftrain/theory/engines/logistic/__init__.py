"""The engine for the logistic loss, compiled."""
