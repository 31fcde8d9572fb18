"""Bytes and values: file and message formats. No sockets, no databases."""
