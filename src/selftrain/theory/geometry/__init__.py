"""From conjugates to the law of the weights: by modes (a sphere has one mode) or by matrices."""
