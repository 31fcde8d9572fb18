"""Repeated collections in simulation: streams, the schemes that follow them, and crowds of devices with ledgers."""
