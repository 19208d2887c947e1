"""All functions and casts as columns of views, over the extremes of their types: ``make extremes``.

``python -m tests.programs.extreme_views --rows 60``: prints what was played and what went wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.support.extreme_views import Played, every_signature, play, prepare
from tests.support.sessions import Server


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=60, help="rows of a table at most")
    parser.add_argument("--refused", action="store_true", help="list the calls that no query of ours may have")
    options = parser.parse_args()
    played = Played()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "data")
        prepare(server.client())
        for number, signature in enumerate(every_signature(options.rows, everything=True)):
            play(server.client(), number, signature, played)
        server.close()
    print(f"{played.calls} calls in {played.views} views, {played.rows} rows, {len(played.refused)} refused")
    print("\n".join(played.wrong + (played.refused if options.refused else [])))
    sys.exit(bool(played.wrong))


if __name__ == "__main__":
    main()
