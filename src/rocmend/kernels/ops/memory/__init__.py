"""Ops that move, gather or fill memory."""
