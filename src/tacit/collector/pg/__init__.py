"""PostgreSQL's wire protocol, read only, for tables of collections with rows."""
