"""One collector a module; each registers itself."""
