"""The squared loss: every step in closed form."""
