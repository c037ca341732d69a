"""The page of `sesame map` in chromium: tests/test_map_page.py WORDS.html VECTORS.html, made by tests/test_map.sh.

WORDS is a map of words by upos in three layers, VECTORS one of 60 vectors with columns text, group and length.
Checks tooltip, zoom, lasso, list, TSV, search, colors, layers, address, keyboard, 320 px, dark colors, the table
without scripts, and that nothing is written to the console. Ends with "N passed, N failed"."""

import os
import sys
import tempfile
import time

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

passed = failed = 0


def check(ok, what, *notes):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print("failed:", what, *notes, flush=True)


def browser(downloads, scripts=True):
    options = Options()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    prefs = {"download.default_directory": downloads}
    if not scripts:
        prefs["profile.managed_default_content_settings.javascript"] = 2
    options.add_experimental_option("prefs", prefs)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options)
    driver.set_window_size(1200, 900)
    return driver


def wait(what, seconds=5):
    end = time.time() + seconds
    while time.time() < end:
        if what():
            return True
        time.sleep(0.05)
    return False


def words(d, url, downloads):
    by_id = lambda name: d.find_element(By.ID, name)
    js = d.execute_script
    d.get(url)
    canvas = d.find_element(By.CSS_SELECTOR, "canvas")
    check(js("return [...canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data].some((v) => v)"), "a picture")
    check(len(d.find_elements(By.CSS_SELECTOR, ".m-key")) == 2, "a key of two classes")
    check(by_id("m-layer-name").text == "3", "the last layer")
    # tooltip
    x, y = js("return [screenX(0) - size.width / 2, screenY(0) - size.height / 2]")
    ActionChains(d).move_to_element_with_offset(canvas, round(x), round(y)).perform()
    check(by_id("m-tip").is_displayed() and "upos" in by_id("m-tip").text, "a tooltip")
    # wheel, reset
    js("canvas.dispatchEvent(new WheelEvent('wheel', {deltaY: -400, clientX: 300, clientY: 400, cancelable: true}))")
    check(js("return view.zoom") > 1.5, "the wheel zooms")
    check(wait(lambda: "view=" in d.current_url), "the address has the view")
    by_id("m-reset").click()
    check(js("return view.zoom") == 1, "reset")
    # lasso around everything
    by_id("m-lasso").click()
    w, h = js("return [size.width / 2 - 6, size.height / 2 - 6]")
    chain = ActionChains(d).move_to_element_with_offset(canvas, -int(w), -int(h)).click_and_hold()
    for dx, dy in ((2 * w, 0), (0, 2 * h), (-2 * w, 0)):
        chain.move_by_offset(int(dx), int(dy))
    chain.release().perform()
    total = js("return count")
    check(by_id("m-list-title").text.startswith(f"{total} selected"), "the lasso selects all", by_id("m-list-title").text)
    check(len(d.find_elements(By.CSS_SELECTOR, ".m-item mark")) == min(total, 200), "a list with the words marked")
    check(js("return tsv().split('\\n').length") == total + 2, "TSV rows")
    by_id("m-tsv").click()
    check(wait(lambda: os.path.exists(os.path.join(downloads, "points.tsv"))), "the TSV is saved")
    by_id("m-clear").click()
    # search, layer, colors, address
    d.find_element(By.TAG_NAME, "body").send_keys("/")
    check(js("return document.activeElement.id") == "m-find", "/ goes to the search")
    by_id("m-find").send_keys("bank")
    check(by_id("m-found").text == "18 found", "search", by_id("m-found").text)
    js("canvas.focus()")
    canvas.send_keys("[")
    check(by_id("m-layer-name").text == "2", "[ is the previous layer")
    check(wait(lambda: js("return shown === positions[1]")), "the points move")
    by_id("m-color").find_element(By.CSS_SELECTOR, "option[value='0']").click()
    check(wait(lambda: "color=word" in d.current_url and "layer=2" in d.current_url and "find=bank" in d.current_url), "the address")
    d.get("about:blank")
    d.get(url + "#color=word&layer=2&find=bank")
    check((by_id("m-layer-name").text, by_id("m-found").text, js("return state.color")) == ("2", "18 found", 0), "the address restores")
    # keyboard
    canvas = d.find_element(By.CSS_SELECTOR, "canvas")
    js("canvas.focus()")
    canvas.send_keys(Keys.ARROW_RIGHT)
    check(js("return hot") >= 0 and by_id("m-status").get_attribute("textContent"), "arrows go to a point, which is announced")
    canvas.send_keys(Keys.ENTER)
    check(by_id("m-list-title").text.startswith("1 selected"), "Enter selects")
    canvas.send_keys(Keys.ESCAPE)
    check(by_id("m-list-title").text == "Selection", "Escape clears")
    canvas.send_keys("?")
    check(by_id("m-help").is_displayed(), "? shows the keys")
    by_id("m-help").find_element(By.CSS_SELECTOR, "button").click()
    by_id("m-save").click()
    check(wait(lambda: os.path.exists(os.path.join(downloads, "map.svg"))), "the SVG is saved")
    key = d.find_element(By.CSS_SELECTOR, ".m-key")
    key.click()
    check(key.get_attribute("aria-pressed") == "false" and js("return inView().length") < total, "a class is hidden")
    named = js("return [...document.querySelectorAll('.map button, .map input, .map select')].every((e) => e.textContent.trim() || e.labels?.length)")
    check(named, "every control has a name")
    d.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
    check(js("return cssColor('--m-surface')") == "#171c22", "dark colors")
    d.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 320, "height": 800, "deviceScaleFactor": 1, "mobile": True})
    check(js("return document.documentElement.scrollWidth") <= 320, "320 px need no scrolling")


def main():
    with tempfile.TemporaryDirectory() as downloads:
        d = browser(downloads)
        words(d, "file://" + os.path.abspath(sys.argv[1]), downloads)
        d.get("file://" + os.path.abspath(sys.argv[2]))
        d.find_element(By.ID, "m-color").find_element(By.CSS_SELECTOR, "option[value='2']").click()
        check(d.find_elements(By.CSS_SELECTOR, ".m-bar"), "a column of numbers has a scale")
        check(not d.find_elements(By.ID, "m-layer"), "no slider for one layer")
        log = [x["message"] for x in d.get_log("browser")]
        check(not log, "an empty console", log)
        d.quit()
        d = browser(downloads, scripts=False)
        d.get("file://" + os.path.abspath(sys.argv[2]))
        check(len(d.find_elements(By.CSS_SELECTOR, "noscript tbody tr")) == 60, "a table without scripts")
        d.quit()
    print(f"{passed} passed, {failed} failed")


main()
