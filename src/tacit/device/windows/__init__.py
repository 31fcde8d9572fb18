"""Asking the same device again, window after window: calendar, slots, the account that caps it, and what it guarantees.

Everything here is decided on the device, from its own clock, secret and ledger; no server is trusted with a budget.
"""
