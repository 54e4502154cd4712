"""Words, style, distances, grammar, trees: one door to each language library, opened when it is used."""
