"""Data of the port: names and headers, each file with its sources."""
