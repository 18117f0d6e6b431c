"""A real server and a real browser for the tests of the page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1280,900", "--safebrowsing-disable-download-protection",
)  # fmt: skip


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """`selftrain explore`, started as a person would; its address."""
    command = [sys.executable, "-m", "selftrain", "explore", "--no-open", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        line = server.stderr.readline()
        found = re.search(r"http://\S+/", line)
        assert found, line
        lines: list[str] = []
        threading.Thread(target=lambda: lines.extend(server.stderr or ()), daemon=True).start()
        yield found[0].replace("localhost", "127.0.0.1")
        server.terminate()
        server.wait(20)
    assert not [line for line in lines if "Traceback" in line], lines


@pytest.fixture(scope="session")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="session")
def browser(downloads: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium of the system's packages, driven through its driver."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert None not in (binary, driver), (
        "the tests of the page need chromium and chromedriver: make browser"
    )
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    saving = {"download.default_directory": str(downloads), "safebrowsing.enabled": True}
    options.add_experimental_option("prefs", saving)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chromium = webdriver.Chrome(options=options, service=Service(driver, env=os.environ))
    chromium.set_script_timeout(60)
    yield chromium
    chromium.quit()
