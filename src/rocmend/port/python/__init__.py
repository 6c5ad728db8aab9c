"""Python sources: positions, names and gates."""
