"""Captions made from captions: by rules, by grammar, by mining, by language models.

A *maker* proposes candidates for a source caption, *checks* accept or reject each with a reason; all of it is kept.
"""
