"""One derivation a module; each registers itself."""
