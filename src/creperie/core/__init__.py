"""The ground floor: what every room stands on, and what imports no room."""
