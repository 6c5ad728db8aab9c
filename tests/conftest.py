"""What all tests share."""

from __future__ import annotations

import os
import tempfile

from hypothesis import settings

# A deadline judges the machine, not the code: shared two-core machines pause for longer than any example takes.
settings.register_profile("house", deadline=None)
settings.load_profile("house")

# No test may write into the store or the caches of the person who runs it.
os.environ["ROCMEND_HOME"] = tempfile.mkdtemp(prefix="rocmend-tests-")
os.environ["ROCMEND_CACHE_HOME"] = tempfile.mkdtemp(prefix="rocmend-tests-cache-")
