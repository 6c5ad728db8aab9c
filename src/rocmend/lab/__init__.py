"""Experiments: factors, strategies, an oracle; trials of them, and what follows from their outcomes."""
