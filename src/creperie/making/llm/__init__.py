"""Captions written by language models: SugarCrepe's seven types of foils, second positives, richer captions.

Prompts are data (`prompts/*.toml`), workflows are conversations that ask questions and continue with the answers, and
all conversations of a batch run at once so that a server always has work.
"""
