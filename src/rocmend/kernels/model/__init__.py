"""A cost model: how long a kernel would take on an AMD GPU that is not there, estimated from its code object.

``listing`` reads the assembly, ``scalar`` follows its control flow with a launch's arguments, ``clock`` adds up the
cycles, ``estimate`` makes a time of them, and ``rank`` orders candidates by it. The constants, each with its source,
are in ``hardware.toml``.
"""
