"""The shuffle model: what reports that nobody can link to people are worth, and the protocols that make them so."""
