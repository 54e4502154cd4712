"""Generative image-text models: how likely is a caption, an answer, a choice?"""
