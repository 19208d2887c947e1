"""Loads the Hypothesis profile before any test is collected."""

from __future__ import annotations

from hypothesis import settings

from tests.profiles import NAME

settings.load_profile(NAME)
