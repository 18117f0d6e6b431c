"""Random numbers by seed, step and purpose; normals by position."""
