"""Measuring what a machine can do, each setting in a process of its own, behind a check of the results.

A *case* is what is measured (a product of one shape in one dtype); a *setting* is how (variables of the environment,
options, a build, a back end). A *suite* has cases and settings, and opens a *session* for each setting. `measure` asks
the sessions in turn for blocks of runs; a case whose result is wrong gets no figure.

`child`, `workloads/` and `networks/` run inside the child, in whatever environment holds the user's torch: they import
the standard library, torch and each other, nothing else.
"""
