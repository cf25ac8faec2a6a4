"""What would make a function faster: each tip was tried on it, measured and compared."""
