"""Parts for tests and demos: tiny checkpoints in the layout of model hubs, generated on demand, and local servers."""
