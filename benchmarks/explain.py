"""How fast ``rocmend explain`` reads a log, and how much memory that takes: MB/s of processor time, without a file.

python benchmarks/explain.py [MEGABYTES]
"""

from __future__ import annotations

import resource
import sys
import time
from itertools import cycle, islice

from rocmend.kb.errors import BLOCK_BYTES, ErrorReader, index_of
from rocmend.kb.load import load_entries

QUIET = (
    "[ 1927.068795] systemd[1]: Started session {} of user x.\n",
    "INFO 11-20 10:00:{} [loggers.py:116] Engine 000: Avg prompt throughput: {}.3 tokens/s, error rate 0.0\n",
    "step {}/10000 loss=2.3 lr=1e-4 failed=0\n",
    "[ 12.1] amdgpu 0000:c5:00.0: amdgpu: ring gfx_0.0.0 uses VM inv eng {} on hub 0\n",
)
FAULT = "amdgpu 0000:0e:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:173 vmid:8 pasid:32791)\n"


def block(every: int) -> bytes:
    """Return lines of a log, one in so many an error; 0 for none."""
    lines = []
    for number, line in enumerate(islice(cycle(QUIET), 20_000)):
        lines.append(line.format(number % 60, number))
        if every and number % every == 0:
            lines.append(FAULT)
    return "".join(lines).encode()[:BLOCK_BYTES]


def main() -> None:
    """Print the speed of quiet logs, logs with errors, and floods."""
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    index = index_of(load_entries())
    for name, every in (
        ("no error", 0),
        ("an error in 1000 lines", 1000),
        ("an error in 10 lines", 10),
        ("only errors", 1),
    ):
        data = block(every)
        reader = ErrorReader(index)
        begin = time.process_time()
        while reader.bytes < megabytes * 1_000_000:
            reader.feed(data)
        reader.finish()
        spent_s = time.process_time() - begin
        print(f"{name}: {reader.bytes / 1e6 / spent_s:.0f} MB/s, {len(reader.found())} known errors")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
