"""Reads AMD code objects, fat binaries and wheels without a GPU and without importing them."""
