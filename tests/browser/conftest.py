"""A gateway with its console, an operator, and a real browser: Debian's Chromium, never a download."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from octavo_stack import Stack
from requirements_of_tests import require
from servers_of_tests import wait_until

OPERATOR = "olga"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    require(found, "no chromium")
    flags = ["--no-sandbox", "--disable-dev-shm-usage"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=flags)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def console(redis_binary: Path, smollm2_dir: Path) -> Iterator[Stack]:
    """No engine: the console needs none. `keys["olga"]` is the operator's password."""
    with Stack.opened(redis_binary, smollm2_dir) as stack:
        stack.prepare()
        stack.keys[OPERATOR] = stack.manage("create_operator", "--username", OPERATOR).split()[-1]
        stack.start_gateway()
        wait_until(lambda: stack.status("/health") == 200, stack.logs(), 60)
        yield stack
