"""Every benchmark creperie knows by name, and how to get it."""
