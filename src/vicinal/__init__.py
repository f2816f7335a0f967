"""How far to trust each prediction of a neural-network classifier, told by the training points around it."""

__version__ = "0.1.0"
