"""Heavy hitters: frequent strings and ids out of domains nobody can enumerate."""
