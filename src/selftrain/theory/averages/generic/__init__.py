"""Averages of any loss and labeler, in numpy."""
