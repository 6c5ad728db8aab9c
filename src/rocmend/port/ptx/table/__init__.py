"""Translations of PTX instructions, a family a module."""
