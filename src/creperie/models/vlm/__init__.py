"""Generative image-text models, which score by the likelihood of captions and answers, or by multiple choice."""
