"""Settings for all tests: Hypothesis draws the same examples in every run and never fails for being slow."""

from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")
