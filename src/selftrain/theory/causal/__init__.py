"""The theory of general training protocols, in particular of data reuse
(docs/reuse-derivation.md).
"""
