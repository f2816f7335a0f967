"""For all tests: a property is no test of speed, so hypothesis sets no deadlines."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("vicinal", deadline=None)
settings.load_profile("vicinal")
