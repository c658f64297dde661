"""The embedded engine: SQLite holds the truth, tantivy the text index derived from it."""
