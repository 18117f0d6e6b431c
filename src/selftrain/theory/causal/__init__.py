"""The theory of any training protocol, data reuse above all (docs/reuse.md has the equations)."""
