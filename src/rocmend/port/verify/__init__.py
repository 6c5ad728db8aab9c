"""The ladder of proofs of a port."""
