"""Averages over the batch of one step, two classes, by quadrature: for the logistic loss, the
squared loss, and any other.
"""
