"""A real browser for the tests of the pages: Debian's chromium, driven by selenium."""

import shutil
import tempfile
import time

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait


# What hinders a reader who sees little or uses no pointer: texts with a contrast below 4.5 (WCAG 1.4.3), what can be scrolled but not by
# keys, headings of columns without a word, controls without a name.
HINDRANCES = """
const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
const light = (rgb) => rgb.map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const back = (part) => {
  for (; part; part = part.parentElement) {
    const c = numbers(getComputedStyle(part).backgroundColor);
    if (c.length < 4 || c[3] === 1) return c.slice(0, 3);
  }
  return [255, 255, 255];
};
const opacity = (part) => { let all = 1; for (; part; part = part.parentElement) all *= getComputedStyle(part).opacity; return all; };
const found = [];
for (const part of document.body.querySelectorAll('*')) {
  if (part.closest('[inert], :disabled, script, noscript') || part.getClientRects().length === 0) continue;
  const style = getComputedStyle(part), says = part.outerHTML.slice(0, 100);
  if ([...part.childNodes].some((node) => node.nodeType === 3 && /[\\p{L}\\p{N}]/u.test(node.data))) {
    const ground = back(part), share = opacity(part), ink = numbers(style.color).slice(0, 3).map((c, i) => share * c + (1 - share) * ground[i]);
    const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x), contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) found.push(`contrast ${contrast.toFixed(2)}: ${says}`);
  }
  const scrolls = (kind, size) => ['auto', 'scroll'].includes(kind) && size > 2;
  if ((scrolls(style.overflowY, part.scrollHeight - part.clientHeight) || scrolls(style.overflowX, part.scrollWidth - part.clientWidth))
      && part.tabIndex < 0 && ![...part.querySelectorAll('*')].some((each) => each.tabIndex >= 0)) found.push(`no key scrolls it: ${says}`);
  if (part.matches('th') && !part.textContent.trim()) found.push(`empty heading: ${says}`);
  if (part.matches('button, input, select, textarea') && !part.textContent.trim() && !part.getAttribute('aria-label') && !part.labels?.length)
    found.push(`no name: ${says}`);
}
return found;"""


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

    def hindrances(self):
        """See HINDRANCES. What keys scroll is known a moment after the sizes have changed (dom.js)."""
        end = time.monotonic() + 2
        while (found := self.script(HINDRANCES)) and time.monotonic() < end:
            time.sleep(0.05)
        return found

    def faults(self):
        """What the console has said since the last call: errors and warnings."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
