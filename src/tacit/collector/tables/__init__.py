"""Collections with rows, as tables that SQL can ask."""
