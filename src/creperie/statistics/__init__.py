"""Factor analysis: mixed models over items, models and constructions."""
