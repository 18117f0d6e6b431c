"""One step: its equations, Newton's method on them, and the slower methods behind it."""
