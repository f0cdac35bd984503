"""Shared settings of the whole suite."""

from __future__ import annotations

import os

from hypothesis import settings

# A loaded machine must not fail a law, and a red run must be red again: no deadline, fixed seeds.
# `HYPOTHESIS_PROFILE=explore pytest` looks further, with fresh randomness.
settings.register_profile("fixed", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
