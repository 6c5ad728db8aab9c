"""Files of arrays."""
