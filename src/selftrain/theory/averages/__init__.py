"""The averages over one batch of two classes, by quadrature: logistic, squared, any other loss."""
