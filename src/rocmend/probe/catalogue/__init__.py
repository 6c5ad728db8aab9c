"""The probes: one file a family. A module here is found by walking this package.

Modules are imported without torch, to list what there is; torch is imported by the functions, inside the child.
"""
