"""Ops that reduce or normalize rows."""
