"""One step: its equations, Newton's method for them, and the slower fallback methods."""
