"""Proving which operations run on a device, each in its own supervised child process.

`registry`, `case`, `oracle`, `child` and `catalogue/` run inside the child, in whatever environment holds the user's
torch: they import the standard library, torch and each other, nothing else.
"""
