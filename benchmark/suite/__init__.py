"""One table of what programs cost in opwise, in its peers, and at the least on this machine."""
