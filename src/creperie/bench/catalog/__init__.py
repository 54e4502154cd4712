"""The catalog: the benchmarks that creperie knows by name, and how to get them."""
