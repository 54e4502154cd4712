"""Is this benchmark hackable, and through what? Attackers, their margins, and what they say about a benchmark."""
