"""Models of PyMC, timed under opwise and PyTensor's own linkers: see ``__main__.py``."""
