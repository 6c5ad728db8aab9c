"""Keeps evidence: one SQLite file, with artifacts beside it by what they hold."""
