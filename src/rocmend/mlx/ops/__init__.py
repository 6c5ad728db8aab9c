"""The operations: one file a family, each with its public functions (its ``__all__``), their primitives and rules."""
