"""Scans and linear attention: what carries a state along a sequence."""
