"""Joint tables of several attributes, and what they say about each other."""
