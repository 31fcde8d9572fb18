"""The one abstraction: a mechanism, the tallies that add, and the estimate that carries its error."""
