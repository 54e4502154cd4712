"""Captions made by language models: SugarCrepe's seven types of foils, second positives, richer captions.

Prompts are data (`prompts/*.toml`), workflows are conversations that ask and go on with the answers, and all
conversations of a chunk are held at once so that a server always has work.
"""
