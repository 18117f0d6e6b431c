"""One module per figure: what to compute, how to draw it, and the claims it must bear out."""
