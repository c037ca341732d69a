"""Drives every panel of the web page in chromium: tests/test_web.py URL [OPTION...].

URL is that of a running `sesame serve` with the bundled models, a reranker and an encoder-decoder; --few that of
one with a single masked language model, --keyed of one that needs the key right-key; tests/test_web.sh starts them.
Checks: a result appears, what can be copied runs (with --build, the folder of the command), nothing is written
to the console (so no violation of the security policy), no request leaves the server, the address restores the
state, the keyboard suffices, 320 px need no horizontal scrolling, axe-core finds nothing serious. Needs
python3-selenium and chromium-driver. Ends with "N passed, N failed" (", N skipped" may follow)."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

# panel: (what the result contains, how often at least)
PANELS = {
    "models": (".model-card", 2),
    "server": (".tile", 6),
    "fill-mask": (".bars tbody tr", 5),
    "classify": (".bars tbody tr", 2),
    "zero-shot": (".bars tbody tr", 3),
    "entities": ("mark.entity", 2),
    "answer": ("mark.answer", 1),
    "search": (".rank-column li", 8),
    "similarity": (".matrix td", 36),
    "map": (".map circle", 20),
    "write": (".stats dd", 3),
    "summarize": (".generated", 1),
    "translate": (".generated", 1),
    "tokenizer": (".piece", 20),
    "attention": (".attention-line", 10),
    "explain": (".contributions tr", 20),
    "lens": (".drawing rect", 5),
}
UNAVAILABLE = ["classify", "answer", "write", "summarize"]  # with a masked language model only


class Counter:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def check(self, ok, what, *notes):
        if ok:
            self.passed += 1
        else:
            self.failed += 1
            print("failed:", what, *notes, flush=True)
        return ok

    def skip(self, what):
        self.skipped += 1
        print("skipped:", what, flush=True)


class Page:
    def __init__(self, url, counter):
        options = Options()
        for argument in (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--disable-background-networking",
            "--no-first-run",
        ):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options)
        self.driver.set_script_timeout(60)
        self.url = url.rstrip("/")
        self.counter = counter
        self.width = 0
        self.size(1280)
        self.theme("light")

    def size(self, width, height=900):
        self.width = width
        self.cdp(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def theme(self, name):
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def cdp(self, command, **arguments):
        return self.driver.execute_cdp_cmd(command, arguments)

    def js(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    def open(self, hash_):
        self.driver.get("about:blank")
        self.driver.get(f"{self.url}/#/{hash_}")
        self.settle()

    def settle(self, seconds=30):
        """Waits until the panel is drawn and no request is under way."""
        time.sleep(0.05)
        return self.wait(
            lambda: self.js(
                "const o = document.querySelector('.output'), m = document.querySelector('main h1');"
                "return m && (!o || o.getAttribute('aria-busy') === 'false')"
            ),
            seconds,
        )

    def wait(self, condition, seconds=20):
        end = time.time() + seconds
        while time.time() < end:
            try:
                if condition():
                    return True
            except WebDriverException:
                pass
            time.sleep(0.05)
        return False

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def texts(self, selector):
        return self.js(
            "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector
        )

    def field(self, label):
        """The control with a label, as a user finds it."""
        return self.js(
            "const l = [...document.querySelectorAll('main label')].find("
            "(e) => e.textContent.trim() === arguments[0]); return l && document.getElementById(l.htmlFor)",
            label,
        )

    def write(self, label, text):
        field = self.field(label)
        field.clear()
        field.send_keys(text)
        return field

    def button(self, text):
        return self.js(
            "return [...document.querySelectorAll('main button')].find("
            "(e) => e.textContent.trim() === arguments[0])",
            text,
        )

    def press(self, *keys):
        ActionChains(self.driver).send_keys(*keys).perform()

    def chord(self, modifier, key):
        ActionChains(self.driver).key_down(modifier).send_keys(key).key_up(modifier).perform()

    def active(self):
        return self.driver.switch_to.active_element

    def console(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def foreign_requests(self):
        urls = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                urls.append(message["params"]["request"]["url"])
        own = (self.url + "/", "blob:" + self.url, "about:", "chrome:", "data:,")
        return [u for u in urls if not u.startswith(own) and u != self.url]


# ---- every panel ----


def run_copy(page, panel, tab, text, build):
    """Runs what a user copies. Python programs that need packages and commands without a bundled model are not run."""
    if tab == "curl":
        page.counter.check(page.url in text, f"{panel}: curl without the address: {text}")
    if tab == "Python" and not text.startswith("import json"):
        compile(text, panel, "exec")
        return
    if text.startswith("#") or not build or (tab == "curl" and not shutil.which("curl")):
        return
    program = [sys.executable, "-c", text] if tab == "Python" else ["sh", "-c", text]
    paths = os.path.abspath(build) + os.pathsep + os.environ["PATH"]
    done = subprocess.run(
        program, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, env={**os.environ, "PATH": paths}
    )
    ok = done.returncode == 0 and b'"error"' not in done.stdout and len(done.stdout) > 1
    page.counter.check(ok, f"{panel}: {tab} fails:", text, done.stdout[:300], done.stderr[:300])


def test_panels(page, shots, build):
    for panel, (selector, least) in PANELS.items():
        page.open(panel)
        page.wait(lambda: len(page.all(f".result {selector}")) >= least, 20)
        n = len(page.all(f".result {selector}"))
        page.counter.check(
            n >= least, f"{panel}: {selector} occurs {n} times, not {least}", page.texts("main .field-error")
        )
        page.counter.check(
            not any(page.texts("main .field-error")), f"{panel}: error", page.texts("main .field-error")
        )
        page.counter.check("Round trip" in page.one(".timing").text, f"{panel}: no timings")
        for tab in ("curl", "Python", "CLI", "JSON"):
            page.js(
                "[...document.querySelectorAll('[role=tab]')].find((e) => e.textContent === arguments[0]).click()",
                tab,
            )
            text = page.js("return document.querySelector('.details [role=tabpanel] pre').textContent")
            page.counter.check(len(text) > 5, f"{panel}: nothing to copy as {tab}")
            if tab != "JSON":
                run_copy(page, panel, tab, text, build)
        quiet(page, panel)
        if shots:
            page.driver.save_screenshot(f"{shots}/{panel}.png")


def quiet(page, what):
    console = page.console()
    page.counter.check(not console, f"{what}: console: {console}")
    foreign = page.foreign_requests()
    page.counter.check(not foreign, f"{what}: requests to other hosts: {foreign}")


def test_unavailable(page, few):
    url, page.url = page.url, few
    for panel in UNAVAILABLE:
        page.open(panel)
        page.counter.check("sesame serve -m" in page.one("main").text, f"{panel}: no advice")
        page.counter.check(
            "no model" in page.one(f"[data-panel={panel}]").text, f"{panel}: not marked in the list"
        )
    page.url = url


def test_narrow(page):
    page.size(320, 640)
    for panel in PANELS:
        page.open(panel)
        width = page.js("return document.documentElement.scrollWidth")
        page.counter.check(width <= 320, f"{panel}: {width} px wide on a screen of 320 px")
    page.one("#menu-button").click()
    page.counter.check(
        page.one("#menu-button").get_attribute("aria-expanded") == "true", "menu: not expanded"
    )
    page.counter.check(page.one("#nav a").is_displayed(), "menu: not visible")
    page.counter.check(page.js("return document.documentElement.scrollWidth") <= 320, "menu: too wide")
    page.one("[data-panel=classify]").click()
    page.settle()
    page.counter.check(not page.one("#nav a").is_displayed(), "menu: still open after a choice")
    page.size(1280)


# ---- the panels in use ----


def test_fill_mask(page):
    page.open("fill-mask")
    words = page.one(".words").find_elements(By.TAG_NAME, "button")
    page.counter.check(len(words) == 6, f"fill-mask: {len(words)} words")
    [w for w in words if w.text == "France"][0].click()
    page.settle()
    text = page.field("Sentence").get_attribute("value")
    page.counter.check(text.startswith("The capital of [MASK] is"), f"fill-mask: click gives {text}")
    page.counter.check(len(page.all(".bars")) >= 1, "fill-mask: no result after a click")
    page.all(".words button.masked")[0].click()  # the word comes back
    page.settle()
    text = page.field("Sentence").get_attribute("value")
    page.counter.check("France" in text, f"fill-mask: the word is not put back: {text}")
    page.write("Sentence", "A sentence without a mask.")
    page.button("Run").click()
    page.settle()
    page.counter.check(
        any("mask" in t.lower() for t in page.texts("main .field-error")),
        "fill-mask: no message without a mask",
    )
    page.counter.check(
        page.field("Sentence").get_attribute("aria-invalid") == "true", "fill-mask: field not invalid"
    )
    page.button("Pronouns").click()
    page.wait(lambda: len(page.all(".result .bars")) == 2)
    rows = page.texts(".bars tbody th")
    page.counter.check(
        sorted(rows) == ["he", "he", "she", "she"], f"fill-mask: targets of two sentences: {rows}"
    )


def test_zero_shot(page):
    page.open("zero-shot")
    box = page.field("Labels")
    box.send_keys("music,")
    page.settle()
    page.wait(lambda: len(page.all(".bars tbody tr")) == 4)
    page.counter.check("music" in page.texts(".bars tbody th"), "zero-shot: the new label has no bar")
    page.one("[aria-label='Remove cooking']").click()
    page.wait(lambda: len(page.all(".bars tbody tr")) == 3)
    page.counter.check(
        "cooking" not in page.texts(".bars tbody th"), "zero-shot: the removed label has a bar"
    )
    page.counter.check("labels=" in page.driver.current_url, "zero-shot: labels are not in the address")
    page.field("Several labels may be true").click()
    page.settle()
    total = page.js(
        "return [...document.querySelectorAll('.bars .number')].reduce((s, e) => s + parseFloat(e.textContent), 0)"
    )
    page.counter.check(abs(total - 100) > 0.5, f"zero-shot: independent labels add up to {total} %")


def test_entities(page):
    page.open("entities")
    totals = []
    for least in (0, 0.5, 0.9, 0.99, 1):  # the legend counts the entities that are marked
        page.js(
            "const r = document.querySelector('input[type=range]'); r.value = arguments[0];"
            "r.dispatchEvent(new Event('input'))",
            least,
        )
        legend = [int(t) for t in page.texts(".legend-count")]
        marked = page.js(
            "return [...document.querySelectorAll('.legend-name')].map((name) => [...document.querySelectorAll("
            "'mark.entity')].filter((mark) => mark.textContent.endsWith(name.textContent)).length)"
        )
        page.counter.check(legend == marked, f"entities: from {least}, legend {legend}, marked {marked}")
        totals.append(sum(legend))
    page.counter.check(totals[0] > totals[-1] == 0, f"entities: counts at rising scores: {totals}")
    page.open("entities")
    n = len(page.all("mark.entity"))
    first = page.one(".legend input")
    first.click()
    page.counter.check(len(page.all("mark.entity")) < n, "entities: the filter hides nothing")
    page.js(
        "const r = document.querySelector('input[type=range]'); r.value = 1; r.dispatchEvent(new Event('input'))"
    )
    page.counter.check(len(page.all("mark.entity")) == 0, "entities: the threshold hides nothing")
    page.open(
        "entities?text=" + "%F0%9F%8C%B1%20Angela%20Merkel%20lives%20in%20Berlin."
    )  # not in the BMP: offsets
    marks = [t.replace("PER", "").replace("LOC", "") for t in page.texts("mark.entity")]
    page.counter.check("Berlin" in marks and "Angela Merkel" in marks, f"entities: after an emoji: {marks}")


def test_similarity_and_map(page):
    page.open("similarity")
    page.field("Put similar texts next to each other").click()
    page.counter.check(len(page.all(".matrix td.same")) == 6, "similarity: grouping loses texts")
    page.write("Texts, one per line", "only one")
    page.button("Run").click()
    page.settle()
    page.counter.check(
        any("two texts" in t for t in page.texts("main .field-error")), "similarity: one text is accepted"
    )
    page.open("map")
    page.all(".near-list button")[0].click()
    page.counter.check(len(page.all(".near-list li")) == 5, "map: no neighbors")
    before = page.js("return document.querySelector('.map circle').getAttribute('cx')")
    for method in ("tsne", "umap"):
        page.js("document.querySelector(`input[value=${arguments[0]}]`).click()", method)
        page.settle()
        now = page.js("return document.querySelector('.map circle').getAttribute('cx')")
        page.counter.check(now != before, f"map: {method} is as the method before")
        before = now
    point = page.js("document.querySelector('.map').scrollIntoView({block: 'center'}); return document.querySelectorAll('.map circle')[3]")
    ActionChains(page.driver).move_to_element(point).perform()
    page.counter.check(page.texts(".hover-label text") == ["Birds fly south in the winter."], "map: no label under the pointer")
    page.counter.check(len(page.all(".neighbor-line")) == 5, "map: no lines to neighbors")
    page.js("document.querySelector('.map').scrollIntoView({block: 'center'})")
    lasso(page)
    n = len(page.all(".near-list li"))
    page.counter.check(0 < n < 20, f"map: the lasso selects {n} of 20")
    page.counter.check("picked=" in page.driver.current_url, "map: the selection is not in the address")
    quiet(page, "map")


def test_batch(page, folder):
    page.open("batch")
    page.button("Example").click()
    page.settle()
    page.counter.check(len(page.all(".batch tbody tr")) == 4, "batch: the example has no rows")
    file = os.path.join(folder, "mixed.csv")
    rows = "".join(f'{i};"A dull film; number {i}.";x\n' for i in range(150))
    with open(file, "wb") as f:
        f.write(("Nr;Review;Rest\n" + rows + "150;;x\n151;Caf\u00e9;y\n").encode("latin-1"))
    page.one("#batch-file").send_keys(file)
    page.settle()
    page.wait(lambda: any("152 of 152" in t for t in page.texts(".result .note")), 60)
    page.counter.check(len(page.all(".batch tbody tr")) == 152, "batch: rows are missing", page.texts(".result .note"))
    page.counter.check("Windows-1252" in page.texts(".panel .hint")[0], "batch: the encoding is not said")
    cells = page.texts(".batch tbody tr:nth-child(150) td, .batch tbody tr:nth-child(151) td")
    page.counter.check(cells[1] == "A dull film; number 149." and cells[3] == "negative", "batch: wrong cells", cells)
    page.counter.check(cells[5:] == ["150", "", "x", "", ""], "batch: an empty text has a prediction", cells)
    page.counter.check(not page.button("Download predictions").get_attribute("disabled"), "batch: nothing to download")
    quiet(page, "batch")


def test_compare(page):
    page.open("classify?other=sesame-nli")
    titles = page.texts(".side-by-side h3")
    page.counter.check(titles == ["sesame-sentiment", "sesame-nli"], "classify: no two models", titles)
    page.counter.check(len(page.all(".side-by-side .bars")) == 2, "classify: no two results")
    page.open("")
    page.counter.check(page.texts("h1") == ["Classify"], "the page does not open on a task", page.texts("h1"))
    page.counter.check(page.texts("nav h2")[:2] == ["Try it", "Overview"], "models are not second")
    quiet(page, "compare")


def test_docs(page):
    page.driver.get(page.url + "/docs")
    page.wait(lambda: len(page.all(".route")) > 30)
    for route in ("post_predict", "post_v2_embed", "post_v1_rerank", "post_api_generate", "get_health", "post_map"):
        page.js("document.getElementById(arguments[0]).open = true", route)
        page.js("document.querySelector(`#${arguments[0]} form`).requestSubmit()", route)
        page.wait(lambda: len(page.all(f"#{route} .status")) == 1)
        page.counter.check(page.texts(f"#{route} .status")[0].startswith("Status 200"), f"docs: {route} fails", page.texts(f"#{route} .response"))
    page.js("document.getElementById('filter').value = 'rerank'; document.getElementById('filter').dispatchEvent(new Event('input'))")
    found = page.texts(".route code")
    page.counter.check(len(found) >= 4 and all("rerank" in x for x in found), "docs: the filter finds other routes", found)
    quiet(page, "docs")


def lasso(page):
    """Draws a line around the left half of the map."""
    box = page.one(".map")
    width, height = box.size["width"], box.size["height"]
    chain = ActionChains(page.driver).move_to_element_with_offset(box, 4 - width // 2, 4 - height // 2)
    chain.click_and_hold().move_by_offset(width // 2, 0).move_by_offset(0, height - 8)
    chain.move_by_offset(8 - width // 2, 0).move_by_offset(0, 20 - height).release().perform()


def test_search(page):
    page.open("search")
    page.counter.check(len(page.all(".slope")) == 8, "search: no lines between the rankings")
    n = page.js("return document.querySelectorAll('.request-picker option').length")
    page.counter.check(n == 2, f"search: {n} requests, not one for each ranking")
    page.write("Query", "How do I get to my flight?")
    page.button("Run").click()
    page.wait(lambda: "airport" in page.texts(".rank-column.left li")[0])
    first = page.texts(".rank-column.left li")[0]
    page.counter.check("airport" in first, f"search: first is {first}")


def test_write(page):
    page.open("write")
    area = page.one(".editor textarea")
    page.wait(lambda: len(page.all(".backdrop span")) > 5)
    page.counter.check(len(page.all(".backdrop span")) > 5, "write: no tint")
    same = page.js(
        "return document.querySelector('.backdrop').textContent.startsWith(arguments[0].value)", area
    )
    page.counter.check(same, "write: the tinted text differs from the text")
    start = area.get_attribute("value")
    area.click()
    page.press(Keys.END)
    page.press(Keys.TAB)
    page.wait(lambda: len(page.all(".offer:not(.message)")) >= 1)
    offers = page.texts(".offer:not(.message)")
    page.counter.check(1 <= len(offers) <= 3, f"write: {len(offers)} offers")
    page.press(Keys.ESCAPE)
    page.counter.check(not page.one(".offers").is_displayed(), "write: Esc does not reject")
    page.counter.check(area.get_attribute("value") == start, "write: a rejected offer changed the text")
    page.press("x")  # a letter: Tab offers again
    page.press(Keys.BACKSPACE)
    page.press(Keys.TAB)
    page.wait(lambda: len(page.all(".offer:not(.message)")) >= 2)
    page.press(Keys.ARROW_DOWN)
    chosen = page.texts(".offer[aria-selected=true]")
    page.press(Keys.ENTER)
    page.counter.check(
        chosen and area.get_attribute("value") == start + chosen[0],
        f"write: accepted {chosen}, got {area.get_attribute('value')[len(start):]!r}",
    )
    page.settle()
    page.button("Write on").click()
    page.wait(
        lambda: page.button("Write on") is not None
        and len(area.get_attribute("value")) > len(start + chosen[0]),
        30,
    )
    page.counter.check(
        len(area.get_attribute("value")) > len(start + chosen[0]), "write: streaming adds nothing"
    )
    area.click()
    page.press(Keys.ESCAPE)
    page.press(Keys.TAB)
    page.counter.check(page.active().tag_name != "textarea", "write: Esc and Tab do not leave the editor")
    quiet(page, "write")


def test_attention(page):
    page.open("attention")
    painted = (
        "const c = [...document.querySelectorAll('.thumb canvas')].pop();"
        "return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((x) => x > 0)"
    )
    page.counter.check(page.wait(lambda: page.js(painted), 30), "attention: the last head is not painted")
    page.one("[aria-label='Layer 2, head 3']").click()
    page.settle()
    page.counter.check(
        "Layer 2 of" in page.one(".result").text, "attention: a picture does not choose its layer"
    )
    page.counter.check("layer=1" in page.driver.current_url, "attention: layer is not in the address")
    page.counter.check(
        page.one("[aria-label='Layer 2, head 3']").get_attribute("aria-pressed") == "true",
        "attention: the chosen head is not marked",
    )
    page.write("Text", "The unhappiest cat.")
    page.button("Run").click()
    page.wait(lambda: "##iest" in page.texts(".attention-tokens.from li"))
    page.field("By " + "word").click()
    page.counter.check(
        page.wait(lambda: "unhappiest" in page.texts(".attention-tokens.from li")),
        "attention: no words:",
        page.texts(".attention-tokens.from li"),
    )


def test_server(page):
    page.open("server")
    value = lambda: page.texts(".tile-value")[-1]
    before = value()
    page.counter.check(page.wait(lambda: value() != before, 5), "server: figures do not change")
    page.button("Pause").click()
    page.counter.check(page.button("Resume") is not None, "server: no way to resume")


# ---- address, keyboard, errors, theme ----


def test_address(page):
    page.open("classify")
    page.write("Text", "I did not like the end at all.")
    page.button("Run").click()
    page.settle()
    label = page.one(".headline").text
    link = page.driver.current_url
    page.counter.check("text=I+did+not" in link, f"address: {link}")
    page.driver.get("about:blank")
    page.driver.get(link)
    page.settle()
    page.counter.check(
        page.field("Text").get_attribute("value") == "I did not like the end at all.", "address: text lost"
    )
    page.counter.check(page.one(".headline").text == label, "address: another result")
    page.open("classify?model=nowhere")
    page.counter.check(
        "nowhere is not loaded" in page.one(".model-about").text, "address: an unknown model is not reported"
    )
    page.one("[data-panel=entities]").click()
    page.settle()
    page.driver.back()
    page.settle()
    page.counter.check(page.one("h1").text == "Classify", "address: Back does not go back")


def test_keyboard(page):
    page.open("models")
    page.press(Keys.TAB)
    page.counter.check("Skip" in page.active().text, "keyboard: no link to skip the list")
    page.press(Keys.ENTER)
    page.counter.check(page.active().get_attribute("id") == "main", "keyboard: the link does not skip")
    page.chord(Keys.ALT, Keys.ARROW_DOWN)
    page.settle()
    page.counter.check(page.one("h1").text == "Server", "keyboard: Alt and Down do not change the panel")
    page.js("document.querySelector('[data-panel=answer]').focus()")
    page.press(Keys.ENTER)
    page.settle()
    page.counter.check(page.one("h1").text == "Question answering", "keyboard: Enter does not follow a link")
    page.counter.check(
        page.active().get_attribute("data-panel") == "answer", "keyboard: the list loses the focus"
    )
    page.open("classify")
    page.press("/")
    field = page.active()
    page.counter.check(field.tag_name == "textarea", "keyboard: / does not go to the field")
    page.chord(Keys.CONTROL, "a")
    page.press("Awful, simply awful.")
    page.chord(Keys.CONTROL, Keys.ENTER)
    page.settle()
    page.counter.check("negative" in page.one(".headline").text, "keyboard: Ctrl and Enter do not run")
    for _ in range(40):  # on to the tabs of the request
        page.press(Keys.TAB)
        if page.active().get_attribute("role") == "tab":
            break
    page.counter.check(page.active().get_attribute("role") == "tab", "keyboard: the tabs cannot be reached")
    page.press(Keys.ARROW_RIGHT)
    page.counter.check("curl" in page.one(".details pre").text, "keyboard: arrows do not change the tab")
    page.js("document.activeElement.blur()")
    page.press("?")
    page.counter.check(page.one("#help-dialog").is_displayed(), "keyboard: ? shows no help")
    page.press(Keys.ESCAPE)
    page.counter.check(not page.one("#help-dialog").is_displayed(), "keyboard: Esc does not close the help")


def test_errors(page):
    page.open("classify")
    page.write("Text", " ")
    page.button("Run").click()
    page.settle()
    page.counter.check("Enter a text." in page.texts("main .field-error"), "errors: empty text")
    page.open("write?model=sesame-gpt")
    page.js(
        "fetch = ((f) => (url, o) => url === '/v1/completions' ? Promise.resolve(new Response("
        "'{\"error\":{\"message\":\"queue is full\"}}', {status: 429, headers: {'Retry-After': '2'}})) : f(url, o))(fetch)"
    )
    page.button("Offer three").click()
    page.counter.check(
        page.wait(
            lambda: any("queue is full (try again in 2 s)" in t for t in page.texts("main .field-error"))
        ),
        f"errors: the server's message is not shown: {page.texts('.field-error')}",
    )
    page.console()  # as intended


def test_theme(page):
    page.open("models")
    background = lambda: page.js("return getComputedStyle(document.documentElement).backgroundColor")
    light = background()
    page.theme("dark")
    page.counter.check(background() != light, "theme: the system's is not followed")
    dark = background()
    page.one("#theme-button").click()  # light
    page.counter.check(background() == light, "theme: the button does not choose light")
    page.driver.refresh()
    page.settle()
    page.counter.check(background() == light, "theme: not kept")
    page.one("#theme-button").click()  # dark
    page.theme("light")
    page.counter.check(background() == dark, "theme: the button does not choose dark")
    page.one("#theme-button").click()  # auto
    page.counter.check(background() == light, "theme: the button does not return to the system's")


def test_key(page, keyed):
    url, page.url = page.url, keyed
    page.driver.get("about:blank")
    page.driver.get(f"{keyed}/#/classify")
    dialog = page.one("#key-dialog")
    page.counter.check(page.wait(dialog.is_displayed), "key: not asked for")
    page.press("wrong", Keys.ENTER)
    page.counter.check(page.wait(page.one("#key-refused").is_displayed), "key: a wrong one is not refused")
    page.press("right-key", Keys.ENTER)
    page.counter.check(
        page.wait(lambda: len(page.all(".bars tbody tr")) == 2), "key: no result with the right one"
    )
    page.js("document.querySelectorAll('[role=tab]')[1].click()")
    text = page.one(".details pre").text
    page.counter.check("Authorization: Bearer" in text and "right-key" not in text, f"key: curl: {text}")
    page.console()  # the rejected requests
    page.url = url


def test_axe(page, source):
    for theme, width in (("light", 1280), ("dark", 1280), ("light", 320)):
        page.theme(theme)
        page.size(width)
        for panel in PANELS:
            page.open(panel)
            page.js(source)
            found = page.driver.execute_async_script(
                "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then("
                "(r) => done(r.violations.map((v) => [v.impact, v.id, v.nodes.map((n) => n.html + ' ' +"
                "(n.any[0] ? n.any[0].message : ''))])), (e) => done([['error', String(e), []]]))"
            )
            serious = [f for f in found if f[0] in ("serious", "critical", "error")]
            page.counter.check(not serious, f"axe: {panel}, {theme}, {width} px:", json.dumps(serious)[:1500])
    page.size(1280)
    page.theme("light")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--few")
    parser.add_argument("--keyed")
    parser.add_argument("--axe")
    parser.add_argument("--build")
    parser.add_argument("--shots")
    parser.add_argument("--only")
    options = parser.parse_args()
    counter = Counter()
    page = Page(options.url, counter)
    tests = {
        "panels": lambda: test_panels(page, options.shots, options.build),
        "narrow": lambda: test_narrow(page),
        "fill_mask": lambda: test_fill_mask(page),
        "zero_shot": lambda: test_zero_shot(page),
        "entities": lambda: test_entities(page),
        "similarity": lambda: test_similarity_and_map(page),
        "batch": lambda: test_batch(page, tempfile.mkdtemp(prefix="sesame-web-")),
        "compare": lambda: test_compare(page),
        "docs": lambda: test_docs(page),
        "search": lambda: test_search(page),
        "write": lambda: test_write(page),
        "attention": lambda: test_attention(page),
        "server": lambda: test_server(page),
        "address": lambda: test_address(page),
        "keyboard": lambda: test_keyboard(page),
        "errors": lambda: test_errors(page),
        "theme": lambda: test_theme(page),
    }
    if options.few:
        tests["unavailable"] = lambda: test_unavailable(page, options.few)
    if options.keyed:
        tests["key"] = lambda: test_key(page, options.keyed)
    if options.axe:
        with open(options.axe, encoding="utf-8") as file:
            source = file.read()
        tests["axe"] = lambda: test_axe(page, source)
    else:
        counter.skip("axe-core: no --axe (it is part of the Python package axe-playwright-python)")
    try:
        for name, test in tests.items():
            if options.only and name not in options.only.split(","):
                continue
            try:
                test()
            except Exception as error:  # the next test can still run
                counter.check(
                    False,
                    f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}",
                    f"line {error.__traceback__.tb_next.tb_lineno if error.__traceback__.tb_next else '?'}",
                )
    finally:
        page.driver.quit()
    print(
        f"{counter.passed} passed, {counter.failed} failed"
        + (f", {counter.skipped} skipped" if counter.skipped else "")
    )
    sys.exit(1 if counter.failed else 0)


if __name__ == "__main__":
    main()
