"""Makes the images of kernels that come with the sources, for this architecture:

python -m sql.session.images           adds one of the kernels that have changed: up to minutes
python -m sql.session.images --anew    makes one of all kernels instead, which is smaller: minutes
python -m sql.session.images --check   fails if a kernel of the sources is in none, or one in them is no more

They are made for a baseline that processors of the last ten years have (x86-64-v3, Armv8).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import sys
from pathlib import Path
from typing import Final

from ivm.kernels.image import SHIPPED, Entry, leave_out, read_head
from ivm.kernels.warm import build_image
from ivm.kernels.warm import entries as engine
from sql.session.warm import entries as wire

BASELINES: Final = {
    "x86_64": (
        "x86-64-v3",
        "sse3 ssse3 sse4.1 sse4.2 popcnt cx16 sahf avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave",
    ),
    "aarch64": ("generic", "neon"),
}
"""The processor's name and its features, as LLVM calls them, by architecture."""


def wanted() -> list[Entry]:
    """All kernels that Python calls."""
    return [*engine(), *wire()]


def shipped(machine: str) -> list[Path]:
    """An architecture's images."""
    return sorted(SHIPPED.glob(f"{machine}*.image"))


def lacking(machine: str) -> list[Entry]:
    """The kernels whose present form an architecture's images do not have."""
    has = {entry for path in shipped(machine) for entry in read_head(path).entries}
    return [entry for entry in wanted() if entry not in has]


def gone(machine: str) -> dict[Path, list[Entry]]:
    """The kernels that an architecture's images have and Python does not call any more, by image: with one of them a
    start would look for more."""
    present = {(entry.module, entry.name, entry.types) for entry in wanted()}
    found = {
        path: [e for e in read_head(path).entries if (e.module, e.name, e.types) not in present]
        for path in shipped(machine)
    }
    return {path: entries for path, entries in found.items() if entries}


def make(machine: str, anew: bool) -> int:
    """Make an image of the kernels that this architecture's images lack, or ``anew`` one of all, instead of these
    images. Returns the exit code."""
    name, features = BASELINES[machine]
    old = shipped(machine)
    entries = wanted() if anew else lacking(machine)
    for image, without in gone(machine).items():
        leave_out(image, without)
    if not entries:
        return 0
    digest = hashlib.sha256("".join(entry.symbol for entry in entries).encode()).hexdigest()[:8]
    path = SHIPPED / f"{machine}-{digest}.image"
    asked = ",".join(f"+{feature}" for feature in features.split())
    code = build_image(entries, path, {**os.environ, "NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": asked})
    present = set(wanted())
    for other in old:
        if not code and other != path and (anew or not present & set(read_head(other).entries)):
            other.unlink()
    return code


def stale() -> list[str]:
    """What the images lack, and have too much, in words."""
    found = [
        f"the images for {machine} have no {entry.module}.{entry.name}({', '.join(entry.types)}) of the present sources"
        for machine in BASELINES
        if shipped(machine)
        for entry in lacking(machine)
    ]
    return found + [
        f"{path.name} has {entry.module}.{entry.name}({', '.join(entry.types)}), which is no more"
        for machine in BASELINES
        for path, entries in gone(machine).items()
        for entry in entries
    ]


def main() -> int:
    """The command's exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--anew", action="store_true")
    flags = parser.parse_args()
    if not flags.check:
        return make(platform.machine(), flags.anew)
    found = stale()
    for line in found:
        print(line, file=sys.stderr)
    if found:
        print("make images", file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
