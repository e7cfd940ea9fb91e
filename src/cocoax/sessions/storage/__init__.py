"""A session on disk: SQLite events, checksums and locks."""
