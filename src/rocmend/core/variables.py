"""Variables that rocmend sets for a rocmend that it starts."""

PROGRESS = "ROCMEND_PROGRESS"
"""Where it is set, progress comes on stderr in lines also where the result is for a program."""
MEASURING = "ROCMEND_MEASURING"
"""Where it is set, whoever started the benchmark holds the lock of this machine, and it takes none."""
LOCKS = "ROCMEND_LOCKS"
"""Folder of the lock of this machine, in place of ``/tmp``."""
