"""The level of proof *compiled*: what ops launch, compiled for targets that are not there, and checked.

``record.record`` gives the launches of a case, ``record.specialise`` what Triton would compile for a launch,
``build.compile_launch`` the code object with the layout of its arguments, ``measure.measure`` its figures.
``run.compile_ops`` does it for whole ops in supervised workers.
"""
