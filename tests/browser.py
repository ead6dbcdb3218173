"""Headless Chromium for the tests of pages: Debian's, driven through its own driver."""

import base64
import json
import os
import shutil
from pathlib import Path
from typing import Any, NoReturn

import pytest

HOW = "no Chromium to test the page in: `apt-get install chromium chromium-driver` and selenium"


def _absent(what: str) -> NoReturn:
    """Skip; but where everything must run, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{HOW} ({what})")
    pytest.skip(f"{HOW} ({what})")


class Browser:
    """A Chromium of its own profile that records every request and every console message."""

    def __init__(self, profile: Path) -> None:
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        driver = shutil.which("chromedriver")
        if chromium is None or driver is None:
            _absent("chromium" if chromium is None else "chromedriver")
        try:
            from selenium import webdriver
            from selenium.webdriver.chrome.service import Service
        except ImportError:
            _absent("selenium")
        options = webdriver.ChromeOptions()
        options.binary_location = str(chromium)
        for flag in (
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            f"--user-data-dir={profile}",
            "--window-size=1200,900",
        ):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver: Any = webdriver.Chrome(options=options, service=Service(driver))
        self.driver.set_page_load_timeout(60)
        self.driver.set_script_timeout(60)
        # A page has the focus as it has with a reader; and none of the browser's own is open.
        self.cdp("Emulation.setFocusEmulationEnabled", enabled=True)
        self.driver.get("about:blank")

    def quit(self) -> None:
        self.driver.quit()

    def cdp(self, command: str, **arguments: Any) -> Any:
        return self.driver.execute_cdp_cmd(command, arguments)

    def size(self, width: int, height: int, *, mobile: bool = False) -> None:
        self.cdp(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if mobile else 1,
            mobile=mobile,
        )

    def prefer(self, scheme: str) -> None:
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.cdp("Emulation.setEmulatedMedia", features=[feature])

    def javascript(self, enabled: bool) -> None:
        self.cdp("Emulation.setScriptExecutionDisabled", value=not enabled)

    def open(self, page: Path) -> None:
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)
        self.driver.get(page.as_uri())

    def run(self, script: str) -> Any:
        return self.driver.execute_script(script)

    def wait_for(self, script: str, seconds: float = 40) -> Any:
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.driver, seconds).until(
            lambda driver: driver.execute_script(script)
        )

    def wait_until_drawn(self) -> None:
        self.wait_for(
            "const plots = [...document.querySelectorAll('.plot')];"
            "return plots.length > 0 && plots.every(p => p.dataset.state);"
        )

    def console(self) -> list[str]:
        return [
            entry["message"]
            for entry in self.driver.get_log("browser")
            if entry["level"] in ("SEVERE", "WARNING")
        ]

    def requests(self) -> list[str]:
        """Addresses asked for since ``open``."""
        events = [json.loads(entry["message"]) for entry in self.driver.get_log("performance")]
        return [
            event["message"]["params"]["request"]["url"]
            for event in events
            if event["message"]["method"] == "Network.requestWillBeSent"
        ]

    def hover(self, selector: str, across: float = 0.6) -> None:
        """Move the pointer over an element, at a share of its width and half its height."""
        box = self.run(
            f"const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const b = e.getBoundingClientRect(); return [b.x, b.y, b.width, b.height];"
        )
        for share in (across - 0.05, across):
            self.cdp(
                "Input.dispatchMouseEvent",
                type="mouseMoved",
                x=box[0] + share * box[2],
                y=box[1] + 0.5 * box[3],
            )

    def screenshot(self, path: Path) -> None:
        metrics = self.cdp("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": metrics["width"], "height": metrics["height"], "scale": 1}
        shot = self.cdp("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))
