"""Hypothesis's profiles: ``short`` (`make test`) uses the same examples each time, ``long`` (`make laws`) many others.

Random tests without Hypothesis scale their numbers of seeds, rounds or statements by them too.

HYPOTHESIS_PROFILE=long python -m pytest tests/storage/types/test_codec.py
"""

from __future__ import annotations

import os
from typing import Final

from hypothesis import settings

NAME: Final = os.environ.get("HYPOTHESIS_PROFILE", "short")
LONG: Final = 20
"""The factor by which the long profile increases the number of examples."""

settings.register_profile("short", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("long", deadline=None, max_examples=100 * LONG, print_blob=True)


def scaled(examples: int) -> int:
    """A test's number of examples, scaled for the active profile."""
    return examples * LONG if NAME == "long" else examples
