"""Hard-negative training and fine-tuning, to see whether a "fix" survives an honest benchmark."""
