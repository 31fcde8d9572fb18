"""Local differential privacy: learn what a crowd knows without anyone saying it."""
