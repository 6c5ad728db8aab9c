"""Benchmarks on many machines: each runs them alone, checks its health before and after, and sends its evidence."""
