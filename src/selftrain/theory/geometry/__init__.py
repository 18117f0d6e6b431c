"""From conjugates to the law of the weights: by modes (a sphere is one mode) or by matrices."""
