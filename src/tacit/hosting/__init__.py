"""What every server process of Tacit needs, whichever role it plays: durable files, SQLite, clocks, logs, listening."""
