"""How fast the hardware moves bytes and computes: measured once, and kept."""
