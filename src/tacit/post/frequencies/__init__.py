"""Post-processing of one histogram: non-negative, summing to one, monotone, or shrunk towards a prior."""
