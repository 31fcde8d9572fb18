"""Tasks: which mechanism to use for a question, and how to turn its estimates into an answer."""
