"""Settings shared by all tests: a slow machine is no reason for a property to fail."""

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
