"""Runs tests of kernels with bounds checks: every address and index that a kernel uses is checked.

python -m tests.programs.checked          the short form
python -m tests.programs.checked --long   all tests of kernels and of dataflows, random histories too

Checked kernels are compiled apart, since FRESHET_CHECKED changes the folders of the cache: the first run takes minutes
more. Each block's rows, times and diffs stand apart with gaps between them that no kernel may touch.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from typing import Final

SHORT: Final = ("tests/ivm/test_seek.py", "tests/ivm/test_combine.py", "tests/programs/checked_memory.py")
"""Kernels that are compiled in well under a minute."""
LONG: Final = (
    *SHORT, "tests/ivm/test_interesting_times.py", "tests/ivm/test_kernels.py", "tests/ivm/test_dataflow.py",
    "tests/ivm/test_loops.py", "tests/ivm/test_steps.py", "tests/ivm/test_asof.py", "tests/ivm/test_lock.py",
    "tests/ivm/test_spans.py", "tests/storage/test_dictionary.py", "tests/ivm/test_workers.py",
)  # fmt: skip


def run(files: tuple[str, ...], flags: list[str]) -> int:
    """pytest's exit code. Without the conftest: kernels are compiled when they are called, not all of them."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--noconftest",
        "-p",
        "tests.support.checked_blocks",
        "--timeout",
        "1800",
        *flags,
        *files,
    ]
    return subprocess.run(command, env={**os.environ, "FRESHET_CHECKED": "1"}, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true")
    given, flags = parser.parse_known_args()
    return run(LONG if given.long else SHORT, flags)


if __name__ == "__main__":
    sys.exit(main())
