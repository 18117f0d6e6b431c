"""The engine for any loss and labeler, in plain numpy."""
