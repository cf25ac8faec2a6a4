"""The command ``opwise``: runs programs with a profile, and shows, compares and explains."""
