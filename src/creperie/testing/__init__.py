"""Parts for tests and demos: tiny checkpoints in the layout of model hubs, made on demand, and a scripted model."""
