"""What a person must see when they open the report in a browser."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

pytestmark = pytest.mark.browser

PHONE = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}


def _log(browser: Chrome, kind: str) -> list[dict[str, str]]:
    entries: list[dict[str, str]] = browser.get_log(kind)  # type: ignore[no-untyped-call]
    return entries


def _requests(browser: Chrome) -> list[str]:
    events = [json.loads(entry["message"])["message"] for entry in _log(browser, "performance")]
    return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]


def test_the_verdict_the_findings_and_what_to_do_are_visible(browser: Chrome, report: Callable[[str], str]) -> None:
    browser.get(report("strix-halo"))
    assert browser.find_element(By.TAG_NAME, "h1").text == "strix-halo: gfx1151"
    assert "errors" in browser.find_element(By.CSS_SELECTOR, ".summary.error").text
    assert "AMD Radeon 8060S" in browser.find_element(By.TAG_NAME, "main").text
    card = browser.find_element(By.ID, "gfx1151-cwsr-save-area-too-small")
    assert card.is_displayed()
    assert "error" in card.find_element(By.CLASS_NAME, "label").text.lower()
    assert "13,942,784" in card.find_element(By.CSS_SELECTOR, "h3").text
    assert "Do:" in card.text
    assert "/sys/class/kfd/kfd/topology/nodes/1/properties" in card.text
    link = card.find_element(By.CSS_SELECTOR, ".links a")
    assert link.is_displayed()
    assert (link.get_attribute("href") or "").startswith("https://")


def test_the_explanation_unfolds(browser: Chrome, report: Callable[[str], str]) -> None:
    browser.get(report("strix-halo"))
    card = browser.find_element(By.ID, "gfx1151-cwsr-save-area-too-small")
    inner = card.find_element(By.CSS_SELECTOR, "details .text")
    assert not inner.is_displayed()
    card.find_element(By.TAG_NAME, "summary").click()
    assert inner.is_displayed()
    assert "wave" in inner.text


def test_sections_are_reached_from_the_top(browser: Chrome, report: Callable[[str], str]) -> None:
    browser.get(report("rx-5600-xt"))
    anchors = browser.find_elements(By.CSS_SELECTOR, "nav a")
    titles = [anchor.text for anchor in anchors]
    assert titles[0] == "Findings"
    assert {"What to install", "What to set", "The machine"} <= set(titles)
    for anchor in anchors:
        name = (anchor.get_attribute("href") or "").partition("#")[2]
        assert browser.find_element(By.ID, name).is_displayed()


@pytest.mark.parametrize("machine", ["strix-halo", "rx-5600-xt", "mi300x", "no-amd-gpu"])
def test_it_fits_a_phone(browser: Chrome, report: Callable[[str], str], machine: str) -> None:
    address = report(machine)
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    try:
        browser.get(address)
        width = browser.execute_script("return document.documentElement.scrollWidth")
        assert width <= PHONE["width"]
        size = browser.execute_script("return parseFloat(getComputedStyle(document.body).fontSize)")
        assert size >= 14
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_light_and_dark_differ_and_stay_readable(browser: Chrome, report: Callable[[str], str]) -> None:
    address = report("strix-halo")
    seen = {}
    for scheme in ("light", "dark"):
        feature = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", feature)
        browser.get(address)
        colours = [
            browser.execute_script(f"return getComputedStyle(document.body).{name}")
            for name in ("color", "backgroundColor")
        ]
        seen[scheme] = colours
        assert _contrast(*colours) >= 7
    assert seen["light"] != seen["dark"]


def _contrast(first: str, second: str) -> float:
    """Contrast ratio of two ``rgb(r, g, b)`` colours, as WCAG 2 defines it."""

    def luminance(colour: str) -> float:
        channels = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
        linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_it_asks_the_network_for_nothing_and_logs_nothing(browser: Chrome, report: Callable[[str], str]) -> None:
    address = report("strix-halo")
    browser.get("about:blank")
    _requests(browser)
    _log(browser, "browser")
    browser.get(address)
    assert _requests(browser) == [address]
    assert _log(browser, "browser") == []
