"""The page of a profile: one HTML file with tables, graph and charts that works offline."""
