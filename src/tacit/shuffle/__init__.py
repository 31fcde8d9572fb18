"""The shuffle model: reports that reach the server in no order, and what that is worth."""
