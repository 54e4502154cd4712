"""Parts for tests and demos: tiny checkpoints in the layout of model hubs, made on the spot, and local servers."""
