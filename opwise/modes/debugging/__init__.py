"""Parts of DebugMode: the VM that checks each Apply, the replay of rewrites, and the findings."""
