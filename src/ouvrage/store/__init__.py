"""The only SQL: the ledger on SQLite or PostgreSQL, and what is rebuilt from it."""
