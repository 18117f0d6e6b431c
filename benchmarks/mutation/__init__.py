"""Mutation testing: small faults put into the source, to see whether the tests notice them."""
