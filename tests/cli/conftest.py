"""Settings for the tests of the command."""

import pytest


@pytest.fixture(autouse=True)
def no_plain_progress(monkeypatch):
    """On a busy machine a fit takes long enough for a line on stderr, which most tests expect to be empty."""
    monkeypatch.setattr("cardboost.cli.progress._PLAIN_SECONDS", 600.0)
