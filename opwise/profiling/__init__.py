"""Profiles: what VMs recorded, as plain data; sums, differences and reports made from it."""
