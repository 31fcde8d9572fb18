"""The store in a PostgreSQL database that several collectors share."""
