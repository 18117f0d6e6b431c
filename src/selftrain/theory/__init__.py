"""The large-system limit: the equations of a step, engines that solve them, the laws of weights and
logits, and lower bounds of the error.
"""
