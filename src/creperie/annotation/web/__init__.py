"""The server: pages and an API for annotators, pages for owners."""
