"""Experiments to start from, and a workload to try them with."""
