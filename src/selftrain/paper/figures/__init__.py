"""One module per figure: what to compute, how to draw it, and how to judge its claims."""
