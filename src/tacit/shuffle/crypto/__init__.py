"""Sealing, signing and random streams. Primitives come from the `cryptography` library; what it lacks is here."""
