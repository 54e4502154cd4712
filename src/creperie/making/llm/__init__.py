"""Captions written by language models: SugarCrepe's seven types of foils, second positives, and richer captions.

Prompts are data (`prompts/*.toml`). Workflows are conversations, which ask questions and continue with the answers. All
conversations of a batch run at once, so that a server always has work.
"""
