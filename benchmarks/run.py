"""``make bench``: the engine's workloads, then the server's, each beside the rivals' figures."""

from __future__ import annotations

import sys

from benchmarks import engine, server
from benchmarks.workloads import workloads


def main() -> None:
    """Run the named workloads, or all."""
    names = sys.argv[1:]
    sys.argv[1:] = [n for n in names if n in workloads()]
    if not names or sys.argv[1:]:
        engine.main()
    sys.argv[1:] = [n for n in names if n in server.WORKLOADS]
    if not names or sys.argv[1:]:
        server.main()


if __name__ == "__main__":
    main()
