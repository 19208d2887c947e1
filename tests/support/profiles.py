"""What Hypothesis tries: in ``short`` (`make test`) the same examples each time, in ``long`` (`make laws`) many others.

HYPOTHESIS_PROFILE=long python -m pytest tests/storage/types/test_codec.py
"""

from __future__ import annotations

import os
from typing import Final

from hypothesis import settings

NAME: Final = os.environ.get("HYPOTHESIS_PROFILE", "short")
LONG: Final = 20
"""The long form tries so many times as many examples."""

settings.register_profile("short", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("long", deadline=None, max_examples=100 * LONG, print_blob=True)


def scaled(examples: int) -> int:
    """A test's own number of examples, in the profile that is loaded."""
    return examples * LONG if NAME == "long" else examples
