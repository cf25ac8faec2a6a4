"""From what the user asks for to a function that can be called; public names are in ``opwise``."""
