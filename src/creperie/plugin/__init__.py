"""What a plug-in needs: the protocols of models, attackers, makers and formats, and the types that they use."""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
