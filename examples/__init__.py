"""Captured machines that the project ships, and what writes them."""
