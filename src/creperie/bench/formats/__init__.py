"""The published formats: each is read into items, and some are written back with the same content."""
