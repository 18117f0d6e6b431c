"""Ways to take the averages of a step: compiled logistic, closed-form squared, any other loss."""
