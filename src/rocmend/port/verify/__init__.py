"""The levels of proof of a port."""
