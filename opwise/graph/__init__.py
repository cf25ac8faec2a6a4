"""The symbolic graph: variables, Applys, Ops, types, and the container that rewrites edit."""
