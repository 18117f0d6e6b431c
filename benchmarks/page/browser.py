"""The explorer driven by a real browser: a server, Chromium, and the actions of a visitor.

Shared by the tests of the page and by benchmarks/page/explorer.py. Needs selenium, chromium and
chromedriver.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from selftrain.explorer.controls import CONTROLS, NUMBERS
from selftrain.explorer.page_state import VIEWS
from selftrain.explorer.presets import PRESETS

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1280,900", "--safebrowsing-disable-download-protection",
)  # fmt: skip

CURVE = """
const plot = document.querySelector("#chart");
if (!plot || !plot.data) return null;
const trace = plot.data.find((one) => one.name && one.name.startsWith(arguments[0]));
return trace ? Array.from(trace.y, (value) => (value === undefined ? null : value)) : null;
"""

ENTER = """
const input = document.getElementById(arguments[0]);
const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
set.call(input, arguments[1]);
input.dispatchEvent(new Event("input", {bubbles: true}));
input.dispatchEvent(new Event("change", {bubbles: true}));
"""


SLIDERS = tuple(NUMBERS)

BUTTONS = (
    "pin-it", "unpin", "theme", "play", "best-constants", "simulate", "cancel",
    *(f"preset-{name}" for name in PRESETS),
)  # fmt: skip

WORDS = ("0.3", "0", "inf", "-1", "", "nonsense", "1e999", "<b>", "0.1,0.2", "1:0.5,0.3:2")
"""Valid and invalid texts that a visitor may type."""


@contextmanager
def serving(*opened: str) -> Iterator[tuple[str, int, list[str]]]:
    """Run `selftrain explore` as a user starts it; yield its address, its process id, and the lines
    that it writes to stderr.
    """
    command = [sys.executable, "-m", "selftrain", "explore", *opened, "--no-open", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        line = server.stderr.readline()
        while line and "http://" not in line:
            line = server.stderr.readline()
        found = re.search(r"http://\S+/", line)
        assert found, "the server did not say where it is"
        lines: list[str] = []
        threading.Thread(target=lambda: lines.extend(server.stderr or ()), daemon=True).start()
        try:
            yield found[0].replace("localhost", "127.0.0.1"), server.pid, lines
        finally:
            server.terminate()
            server.wait(20)


@contextmanager
def chromium(downloads: Path, profile: Path) -> Iterator[Any]:
    """Start the Chromium that is installed on the system, and yield its driver."""
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        raise RuntimeError("chromium and chromedriver are needed: make browser installs them")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    saving = {"download.default_directory": str(downloads), "safebrowsing.enabled": True}
    options.add_experimental_option("prefs", saving)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver, env=os.environ))
    browser.set_script_timeout(60)
    try:
        yield browser
    finally:
        browser.quit()


def wait(browser: Any, condition: Any, seconds: float = 45) -> Any:
    """Wait until the condition holds."""
    return WebDriverWait(browser, seconds, poll_frequency=0.1).until(lambda _: condition())


def visit(browser: Any, address: str, query: str = "") -> None:
    """Open the page and wait for its first answer, which may need compiled kernels."""
    browser.get("about:blank")
    browser.get(address + query)
    wait(browser, lambda: text(browser, "sentences") != "", 300)


def curve(browser: Any, name: str = "this run") -> list[float | None] | None:
    """Return the values of the curve whose name begins with `name`."""
    values: list[float | None] | None = browser.execute_script(CURVE, name)
    return values


def text(browser: Any, name: str) -> str:
    """Return the text of an element."""
    script = "const e = document.getElementById(arguments[0]); return e ? e.innerText : '';"
    return str(browser.execute_script(script, name))


def value_of(browser: Any, name: str) -> str:
    """Return the content of a field."""
    return str(browser.find_element(By.ID, name).get_attribute("value"))


def click(browser: Any, name: str) -> None:
    """Press a button."""
    button = browser.find_element(By.ID, name)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()


def press(browser: Any, selector: str) -> None:
    """Click on the element that a CSS selector finds, even if it is not visible."""
    browser.execute_script("document.querySelector(arguments[0]).click()", selector)


def enter(browser: Any, name: str, value: str) -> None:
    """Set the value of a field or a slider, with the events that a visitor would cause."""
    browser.execute_script(ENTER, name, value)


def slide(browser: Any, name: str, position: int) -> None:
    """Move the slider of a control."""
    enter(browser, f"{name}-slider", str(position))


def show(browser: Any, view: str) -> None:
    """Choose a view."""
    press(browser, f"#view input[value={view}]")


def resize(browser: Any, width: int, height: int) -> None:
    """Give the page the size of a screen."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def act_at_random(browser: Any, draw: Any) -> None:
    """Do one random action of a visitor: mostly move a slider, sometimes change the view, click a
    button or type a text.
    """
    kind = draw.choice(["slider", "step", "view", "button", "word"], p=[0.6, 0.1, 0.1, 0.15, 0.05])
    if kind == "slider":
        slide(browser, str(draw.choice(SLIDERS)), int(draw.integers(0, 1001)))
    elif kind == "step":
        enter(browser, "t", str(draw.integers(0, 17)))
    elif kind == "view":
        show(browser, str(draw.choice(list(VIEWS))))
    elif kind == "button":
        press(browser, "#" + str(draw.choice(BUTTONS)))
    else:
        names = [name for name, one in CONTROLS.items() if one.kind in ("number", "text")]
        enter(browser, str(draw.choice(names)), str(draw.choice(WORDS)))


def callback_request(dependency: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """Return the body of the request that the page sends for one of its callbacks.

    Arguments:
        dependency: the callback, as `_dash-dependencies` lists it.
        values: values of inputs and states, by "id.property".
    """

    def filled(members: list[dict[str, str]]) -> list[dict[str, Any]]:
        return [one | {"value": values.get(f"{one['id']}.{one['property']}")} for one in members]

    output = dependency["output"]
    pairs = [one.rsplit(".", 1) for one in output.strip(".").split("...")]
    outputs = [{"id": name, "property": prop.split("@")[0]} for name, prop in pairs]
    return {
        "output": output,
        "outputs": outputs if output.startswith("..") else outputs[0],
        "inputs": filled(dependency["inputs"]),
        "state": filled(dependency["state"]),
        "changedPropIds": list(values)[:1],
    }


def type_into(browser: Any, name: str, words: str) -> None:
    """Replace the text of a field."""
    field = browser.find_element(By.ID, name)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", field)
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(words, Keys.ENTER)
