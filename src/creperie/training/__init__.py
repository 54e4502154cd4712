"""Training and fine-tuning with hard negatives, to test whether they also raise accuracy on unbiased benchmarks."""

from creperie.core.doors import front_door

__all__, __getattr__, __dir__ = front_door(__name__)
