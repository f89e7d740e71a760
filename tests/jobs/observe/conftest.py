"""A browser for the tests of the live page."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.support.displays.live_page import browser


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A browser for all tests of this folder."""
    with browser() as chromium:
        yield chromium


@pytest.fixture
def running(chromium: Browser) -> Iterator[Browser]:
    """The browser, which closes what a test opened: open pages go on asking."""
    yield chromium
    for context in chromium.contexts:
        context.close()
