"""One step: its equations, Newton's method on them, and the slower ways behind it."""
