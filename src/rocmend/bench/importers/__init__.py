"""Readers of benchmark results that others measured, one file each; a file says what it is by what it holds.

A module of this package has ``IMPORTER``, an ``Importer``.
"""
