"""Generative image-text models: the likelihood of captions and answers, and multiple choice."""
