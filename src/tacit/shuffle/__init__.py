"""The shuffle model: what reports are worth that nobody can link to people, and the protocols that keep them apart."""
