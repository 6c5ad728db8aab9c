"""Proving which operations run on a device, each a supervised attempt in a child process.

`registry`, `case`, `oracle`, `child`, `state` and `catalogue/` run inside the child, in whatever environment holds the
user's torch: they import the standard library, torch and each other, nothing else.
"""
