"""Models of the transformers library, by hub name or folder."""
