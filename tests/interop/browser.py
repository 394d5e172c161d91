"""A real browser for the tests of the pages: Debian's chromium, driven by selenium."""

import shutil
import tempfile

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait


class Browser:
    """Headless, with a profile of its own. The page's times are as fast as the machine: tests wait for what they expect."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory()
        options = webdriver.ChromeOptions()
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                         f"--user-data-dir={self.profile.name}"):
            options.add_argument(argument)
        options.binary_location = shutil.which("chromium")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
        self.resize(1280, 1000)

    def close(self):
        self.driver.quit()
        self.profile.cleanup()

    def open(self, address):
        self.driver.get(address)

    def resize(self, width, height, dark=False):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def script(self, code, *words):
        return self.driver.execute_script(code, *words)

    def wait(self, holds, seconds=60):
        """What holds() gives once it is true; what the page has just replaced is looked for again."""
        return WebDriverWait(self.driver, seconds, ignored_exceptions=[Exception]).until(lambda _: holds())

    def faults(self):
        """What the console has said since the last call: errors and warnings."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
