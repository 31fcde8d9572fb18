"""Mechanisms for numbers (means, noisy values, key-value pairs) and for repeated answers (memoisation, dBitFlip)."""
