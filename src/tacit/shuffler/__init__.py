"""The shuffler and the relay as processes, and what every party of a shuffle keeps and sends."""
