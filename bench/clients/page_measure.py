"""The page in a browser: its first load, and typing while a reply streams in. Says it as JSON.

    page_measure.py STATE WORKSPACE SECONDS

A real `bridle serve` with a scripted model that says 200 words a second, Chromium in front of it. A
frame's work is the time from its beginning until the browser has drawn it, in the page's thread.
"""

import gzip
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

BROWSER = "/usr/bin/chromium"
PAUSE = 0.005  # seconds between two words of the model
KEY = 0.05  # ... and between two keys
ENTRANCE = re.compile(r"http://\S+/#code=\S+")
WORDS = "The *quick* brown fox reads `basket.py` and finds that **ten** is not a hundred.\n\n"
USABLE = "() => document.querySelector('textarea') !== null"
WATCH = """() => {
  const seen = (window.seen = { work: [], gaps: [], keys: [] });
  let last = 0;
  const channel = new MessageChannel();
  let begun = 0;
  channel.port1.onmessage = () => seen.work.push(performance.now() - begun);
  const frame = (now) => {
    begun = performance.now();
    if (last) seen.gaps.push(now - last);
    last = now;
    channel.port2.postMessage(0);
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  new PerformanceObserver((list) => {
    for (const one of list.getEntries())
      seen.keys.push(one.processingEnd - one.startTime);
  }).observe({ type: "event", durationThreshold: 16, buffered: false });
}"""


def served(state: str, workspace: str, seconds: float) -> tuple[subprocess.Popen[str], str]:
    """The server, and the address that signs in."""
    script = Path(state).parent / "model.json"
    count = int(seconds / PAUSE / len(WORDS.split())) + 1
    script.write_text(json.dumps({"replies": [{"text": WORDS * count, "pause": PAUSE}]}))
    line = [sys.executable, "-m", "bridle", "serve", "--port", "0", "--workspace", workspace]
    process = subprocess.Popen(
        [*line, "--model", f"scripted:{script}"],
        env=os.environ | {"BRIDLE_STATE": state, "HOME": str(script.parent)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for said in process.stdout:
        if found := ENTRANCE.search(said):
            return process, found[0]
    raise RuntimeError("the server did not start")


def load(browser: Browser, address: str) -> tuple[Page, dict[str, Any]]:
    """A fresh browser on the page: how soon it can be used, and how many bytes that took."""
    page = browser.new_context(viewport={"width": 1280, "height": 860}, bypass_csp=True).new_page()
    bodies: list[bytes] = []

    def keep(response: Any) -> None:
        if "/api/" not in response.url and response.ok:
            bodies.append(response.body())

    page.on("response", keep)
    begun = time.monotonic()
    page.goto(address)
    page.wait_for_function(USABLE)
    usable = time.monotonic() - begun
    size = sum(len(gzip.compress(body, 9)) for body in bodies)
    return page, {"usable_ms": usable * 1000, "load_kb": size / 1024}


def type_along(page: Page, seconds: float) -> dict[str, Any]:
    """Type while a reply comes in: what a frame took, and a key."""
    field = page.locator("textarea").first
    field.fill("begin")
    field.press("Enter")
    page.locator("#composer").wait_for()
    page.wait_for_function("() => document.body.innerText.includes('brown fox')")
    page.locator("#composer").focus()
    page.evaluate(WATCH)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        page.keyboard.type("x")
        time.sleep(KEY)
    seen = page.evaluate("() => window.seen")
    if "xxx" not in page.locator("#composer").input_value():
        raise RuntimeError("nothing was typed")
    work, gaps = sorted(seen["work"]), sorted(seen["gaps"])
    return {
        "frames": len(work),
        "work_p50": part(work, 0.5),
        "work_p95": part(work, 0.95),
        "work_p99": part(work, 0.99),
        "work_worst": work[-1],
        "gap_p50": part(gaps, 0.5),
        "gap_p95": part(gaps, 0.95),
        "slow_keys": len([one for one in seen["keys"] if one > 16]),
    }


def part(values: list[float], share: float) -> float:
    """The value below which that share of them lies."""
    return values[min(len(values) - 1, int(len(values) * share))]


def main() -> None:
    """Measure, and say it."""
    state, workspace, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    process, address = served(state, workspace, seconds + 5)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=BROWSER)
            page, found = load(browser, address)
            found |= type_along(page, seconds)
            browser.close()
    finally:
        process.terminate()
        process.wait(20)
    print(json.dumps(found))


main()
