"""Self-training with rows that are used again: the theory with memory (docs/reuse.md has the
equations).
"""
