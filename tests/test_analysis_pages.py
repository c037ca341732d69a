"""Pages of analyses in chromium: tests/test_analysis_pages.py FOLDER AXE [SHOTS]; made by tests/test_analysis_pages.sh.

Opens every page of the folder in light colors, 1200 px wide, and in dark ones, 320 px wide: figures are there, nothing needs
horizontal scrolling, axe-core (AXE: its script, "-": none) finds nothing serious, and nothing is written to the
console. SHOTS: a folder for pictures. Ends with "N passed, N failed"."""

import json
import os
import sys

from selenium import webdriver
from selenium.webdriver.chrome.options import Options

passed = failed = 0


def check(ok, what, *notes):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print("failed:", what, *notes, flush=True)


def browser():
    options = Options()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options)


def serious(driver, axe):
    driver.execute_script(axe)
    found = driver.execute_async_script(
        "axe.run(document, {resultTypes: ['violations']}).then((r) => arguments[0](JSON.stringify("
        "r.violations.map((v) => [v.id, v.impact, v.nodes[0].html.slice(0, 160)]))))")
    return [v for v in json.loads(found) if v[1] in ("serious", "critical")]


def look(driver, name, url, theme, width, axe, shots):
    what = f"{name}, {theme}, {width} px:"
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                           {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
    driver.get(url)
    size = driver.execute_script("return [document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
    check(size[0] <= width, what, f"{size[0]} px are needed")
    check(driver.execute_script("return document.querySelectorAll('h1').length") == 1, what, "one heading")
    check(driver.execute_script("return document.querySelectorAll('svg, table, canvas').length") > 0, what, "figures")
    if shots:
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                               {"width": width, "height": min(size[1], 4000), "deviceScaleFactor": 1, "mobile": False})
        driver.save_screenshot(os.path.join(shots, f"{name}-{theme}-{width}.png"))
    if axe:
        found = serious(driver, axe)
        check(not found, what, found)
    log = driver.get_log("browser")
    check(not log, what, log)


def main():
    folder = os.path.abspath(sys.argv[1])
    axe = open(sys.argv[2], encoding="utf-8").read() if sys.argv[2] != "-" else None
    shots = sys.argv[3] if len(sys.argv) > 3 else None
    driver = browser()
    for file in sorted(os.listdir(folder)):
        if file.endswith(".html"):
            for theme, width in (("light", 1200), ("dark", 320)):
                look(driver, file[:-5], f"file://{folder}/{file}", theme, width, axe, shots)
    driver.quit()
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
