"""Captions made from captions: by rules, by grammar, by mining, by language models. A *maker* proposes candidates for a
source caption; *checks* accept or reject each candidate and record the reason.
"""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
