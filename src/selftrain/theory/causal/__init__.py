"""The theory of any training protocol, above all data reuse (docs/reuse-derivation.md)."""
