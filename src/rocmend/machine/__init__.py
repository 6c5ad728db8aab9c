"""Reads facts about a machine from a root path, live or captured."""
