"""Numbers and repeated answers: means, noisy values, sampled bits and memoisation."""
