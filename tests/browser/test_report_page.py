"""What a person must see when they open the report in a browser."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from tests.browser.benchmarks import STRIX, Runs, keep

from rocmend.core.examples import EXPERIMENTS, PROJECT
from rocmend.core.units import GIB
from rocmend.report import html
from rocmend.report.document import (
    Bar,
    Bars,
    Card,
    Cell,
    Code,
    Device,
    Document,
    Host,
    Option,
    Pairs,
    Range,
    Ranges,
    Section,
    Span,
    Stack,
    Stacks,
    Step,
    Steps,
    Table,
    Text,
    Tile,
    Tiles,
    Timeline,
    TimelineRow,
    Tone,
    Topology,
    table,
)

pytestmark = pytest.mark.browser

Report = Callable[[str], str]
SAVE_AREA = "gfx1151-cwsr-save-area-too-small"
LONG = "a_name_without_any_place_to_break_" * 6


def _everything() -> Document:
    """Return a document with every block, in every tone, and words too long for a phone."""
    tones = list(Tone)
    heat = table(
        ["", *(f"dtype{number}" for number in range(12))], [["conv", *(Cell("hang 1/2", tone) for tone in tones)]]
    )
    cards = tuple(
        Card(f"{tone} {LONG}", tone, tone.value, f"card-{tone}", (Text(f"`{LONG}`", tone), Code(LONG)), folded=fold)
        for tone in tones
        for fold in (False, True)
    )
    step = Step(
        number=1,
        title=LONG,
        text=LONG,
        commands=(LONG,),
        needs=("root",),
        risk=LONG,
        check=LONG,
        expect=LONG,
        undo=LONG,
        settles=(LONG,),
        options=(Option("Or", LONG, LONG),),
    )
    spans = tuple(Span(tone.value, number, number + 1, tone) for number, tone in enumerate(tones))
    bars = tuple(Bar(f"{tone} {LONG}", number * GIB, LONG, tone) for number, tone in enumerate(tones))
    devices = tuple(Device(f"GPU {number}", "PCIe 5.0 x16", tone) for number, tone in enumerate(tones))
    return Document(
        LONG,
        LONG,
        Tone.WARNING,
        (
            Tiles(tuple(Tile(LONG, tone.value, LONG, tone, "card-error", LONG) for tone in tones)),
            Section("Plan", (Steps((step, Step(0, LONG))),)),
            Section("Pictures", (Bars(bars, LONG), Ranges((Range(LONG, 0, 2, 1, "0", "2", LONG, Tone.WARNING),), LONG),
                                 Stacks((Stack(LONG, bars),), bars[:1], LONG),
                                 Topology((Host(LONG, devices),), LONG, "Links"),
                                 Timeline((TimelineRow(LONG, spans, LONG),), LONG)), beside=True),
            Section("Cards", cards),
            Section("Tables", (Table(heat.columns, heat.rows, LONG, heat=True), Pairs(((LONG, LONG, LONG),)), heat)),
            Section("Folded", (Text(LONG),), folded=True),
        ),
        LONG,
    )  # fmt: skip


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> str:
    page = tmp_path_factory.mktemp("page") / "everything.html"
    page.write_text(html.render(_everything()))
    return page.as_uri()


@pytest.fixture(autouse=True)
def fresh(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave the browser as it was: its size, its media, its scripts."""
    yield
    browser: Chrome = request.getfixturevalue("browser")
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def _log(browser: Chrome, kind: str) -> list[dict[str, str]]:
    entries: list[dict[str, str]] = browser.get_log(kind)  # type: ignore[no-untyped-call]
    return entries


def _requests(browser: Chrome) -> list[str]:
    events = [json.loads(entry["message"])["message"] for entry in _log(browser, "performance")]
    return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]


def _size(browser: Chrome, width: int, height: int = 900) -> None:
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def _shown(browser: Chrome, selector: str) -> list[str]:
    return [found.text for found in browser.find_elements(By.CSS_SELECTOR, selector) if found.is_displayed()]


def test_it_asks_the_network_for_nothing_and_logs_nothing(browser: Chrome, report: Report) -> None:
    address = report("strix-halo")
    browser.get("about:blank")
    _requests(browser)
    _log(browser, "browser")
    browser.get(address)
    asked = [url for url in _requests(browser) if not url.startswith("data:")]
    assert asked == [address]
    assert _log(browser, "browser") == []


def test_the_verdicts_come_first_and_lead_to_their_finding(browser: Chrome, report: Report) -> None:
    _size(browser, 1440)
    browser.get(report("strix-halo"))
    assert browser.find_element(By.TAG_NAME, "h1").text == "strix-halo: gfx1151"
    assert "4 errors" in browser.find_element(By.CSS_SELECTOR, ".summary.error").text
    tiles = browser.find_elements(By.CSS_SELECTOR, ".tiles > li")
    assert [tile.find_element(By.CLASS_NAME, "part").text for tile in tiles] == [
        *("GPU", "Driver", "Firmware", "ROCm", "PyTorch", "Memory")
    ]
    assert [tile.find_element(By.CLASS_NAME, "word").text for tile in tiles][1:4] == ["Problem", "Problem", "Problem"]
    assert tiles[-1].location["y"] + tiles[-1].size["height"] < 600
    assert browser.execute_script("return document.documentElement.scrollHeight") < 4000  # it was 9,500
    body = browser.find_element(By.ID, SAVE_AREA)
    assert not body.is_displayed()
    tiles[1].find_element(By.TAG_NAME, "a").click()
    assert body.is_displayed()
    assert "To do: step" in body.text
    assert "/sys/class/kfd/kfd/topology/nodes/1/properties" in body.text
    top = browser.execute_script("return arguments[0].parentElement.getBoundingClientRect().top", body)
    bar = browser.execute_script("return document.querySelector('.top').getBoundingClientRect().bottom")
    assert bar <= top < 300


def test_a_deep_link_opens_its_finding_with_and_without_script(browser: Chrome, report: Report) -> None:
    for disabled in (False, True):
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": disabled})
        browser.get("about:blank")
        browser.get(f"{report('strix-halo')}#{SAVE_AREA}")
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        assert browser.find_element(By.ID, SAVE_AREA).is_displayed()
        assert not browser.find_element(By.ID, "the-machine").is_displayed()


def test_an_address_that_is_no_escape_is_borne(browser: Chrome, report: Report) -> None:
    browser.get("about:blank")
    _log(browser, "browser")
    browser.get(f"{report('strix-halo')}#100%")
    assert _log(browser, "browser") == []
    assert browser.find_element(By.ID, "find").is_displayed()  # what the script builds further down


def test_the_find_box_leaves_what_holds_the_words(browser: Chrome, report: Report) -> None:
    browser.get(report("strix-halo"))
    before = _shown(browser, ".card summary")
    browser.find_element(By.TAG_NAME, "body").send_keys("/")
    box = browser.switch_to.active_element
    assert box.accessible_name == "Find in this report"
    box.send_keys("save AREA interrupted")
    assert len(_shown(browser, ".card summary")) == 1
    assert browser.find_element(By.ID, SAVE_AREA).is_displayed()
    assert "entr" in browser.find_element(By.CLASS_NAME, "said").text
    assert browser.execute_script("return CSS.highlights.get('found').size") > 0
    box.clear()
    box.send_keys("Ubuntu 24.04.3")
    assert "Ubuntu 24.04.3 LTS" in " ".join(_shown(browser, "dd"))  # in a part that was folded
    box.send_keys(Keys.ESCAPE)
    assert _shown(browser, ".card summary") == before
    assert not browser.find_element(By.ID, "the-machine").is_displayed()
    box.send_keys("no such word anywhere")
    assert browser.find_element(By.CLASS_NAME, "said").text == "Nothing found"


def test_commands_are_copied(browser: Chrome, everything: str) -> None:
    grant = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    browser.execute_cdp_cmd("Browser.grantPermissions", grant)
    browser.get(everything)
    code = browser.find_element(By.CSS_SELECTOR, ".step .code")
    code.find_element(By.CLASS_NAME, "copy").click()
    script = "const done = arguments[0]; navigator.clipboard.readText().then(done, (error) => done(String(error)))"
    assert browser.execute_async_script(script) == LONG
    assert code.find_element(By.CLASS_NAME, "copy").text == "Copied"


def test_the_keyboard_reaches_and_opens_everything(browser: Chrome, report: Report) -> None:
    browser.get(report("strix-halo"))
    seen: list[Any] = []
    for _ in range(30):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        at = browser.switch_to.active_element
        seen.append((at.tag_name, at.text))
        if at.tag_name == "summary":
            break
    assert seen[0] == ("a", "Skip to the report")
    assert ("button", "Open all") in seen
    outline = browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert browser.execute_script("return document.activeElement.parentElement.open")


@pytest.mark.parametrize("width", [390, 820, 1440])
def test_nothing_is_wider_than_the_window(browser: Chrome, report: Report, everything: str, width: int) -> None:
    _size(browser, width)
    for address in (everything, report("strix-halo"), report("mi300x")):
        browser.get(address)
        browser.execute_script("for (const fold of document.querySelectorAll('details')) fold.open = true")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width, address
        assert browser.execute_script("return parseFloat(getComputedStyle(document.body).fontSize)") >= 14


def test_no_column_is_cut_on_a_phone(browser: Chrome, tmp_path: Path) -> None:
    from rocmend.cli.main import main

    with pytest.raises(SystemExit):
        main(["machine", "diff", "strix-halo", "rx-5600-xt", "-o", str(tmp_path / "diff.html")])
    _size(browser, 390)
    browser.get((tmp_path / "diff.html").as_uri())
    cut = "return [...document.querySelectorAll('.scroll')].slice(0, 2).map((one) => one.scrollWidth - one.clientWidth)"
    assert browser.execute_script(cut) == [0, 0]


def test_a_table_of_many_columns_is_read_down_on_a_phone(browser: Chrome, tmp_path: Path) -> None:
    from rocmend.cli.main import main

    with pytest.raises(SystemExit):
        main(["probe", "--list", "-o", str(tmp_path / "probes.html")])
    _size(browser, 390)
    browser.get((tmp_path / "probes.html").as_uri())
    wide = "return [...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth).length"
    assert browser.execute_script(wide) == 0
    name = browser.find_element(By.XPATH, "//th[text()='attention-backward-causal']")
    assert name.rect["height"] < 30  # one line: no word is broken


def test_the_plan_has_the_width_of_the_page(browser: Chrome, report: Report) -> None:
    _size(browser, 1440)
    browser.get(report("strix-halo"))
    plan = browser.find_element(By.CSS_SELECTOR, ".steps").rect["width"]
    assert plan == browser.find_element(By.CSS_SELECTOR, ".tiles").rect["width"]
    cut = "return [...document.querySelectorAll('.step pre')].filter((one) => one.scrollWidth > one.clientWidth).length"
    assert browser.execute_script(cut) == 0


CONTRASTS = """
const lum = (c) => { const f = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  return 0.2126 * f(c[0]) + 0.7152 * f(c[1]) + 0.0722 * f(c[2]); };
const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
const rgba = (text) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data]; };
const ratio = (a, b) => { const [x, y] = [lum(a), lum(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
const behind = (at) => { for (; at; at = at.parentElement) {
  const shape = at.localName === "svg" && [...at.children].find((one) => one.localName === "rect");
  if (shape) { const fill = rgba(getComputedStyle(shape).fill); if (fill[3] === 255) return fill; }
  const colour = rgba(getComputedStyle(at).backgroundColor); if (colour[3] === 255) return colour; }
  return [255, 255, 255]; };
const found = [];
for (const fold of document.querySelectorAll("details")) fold.open = true;
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  const at = node.parentElement;
  if (!node.data.trim() || ["SCRIPT", "STYLE", "title", "desc"].includes(at.tagName)) continue;
  const style = getComputedStyle(at);
  const colour = rgba(at.localName === "text" ? style.fill : style.color);
  const value = ratio(colour, behind(at));
  if (value < 4.5) found.push([at.tagName, String(at.className.baseVal ?? at.className), node.data.trim(), value]);
}
return found;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_the_contrast_of_wcag_aa(browser: Chrome, everything: str, scheme: str) -> None:
    other = "dark" if scheme == "light" else "light"
    _scheme(browser, scheme)
    browser.get(everything)
    assert browser.execute_script(CONTRASTS) == []
    browser.find_element(By.CSS_SELECTOR, f"button[aria-label='{other.title()} colours']").click()
    assert browser.execute_script("return getComputedStyle(document.documentElement).colorScheme") == other
    assert browser.execute_script(CONTRASTS) == []


def test_without_script_all_is_readable_and_nothing_is_left_that_needs_one(browser: Chrome, report: Report) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.get(report("strix-halo"))
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert browser.find_elements(By.CSS_SELECTOR, "button, input") == []
    fold = browser.find_element(By.CSS_SELECTOR, "details.card")
    fold.find_element(By.TAG_NAME, "summary").click()
    assert fold.find_element(By.CLASS_NAME, "body").is_displayed()


def test_print_shows_what_is_folded_and_hides_the_tools(browser: Chrome, report: Report) -> None:
    browser.get(report("strix-halo"))
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shown = "const at = document.getElementById(arguments[0]); return at.checkVisibility() && at.offsetHeight > 100"
    assert browser.execute_script(shown, SAVE_AREA)
    assert not browser.find_element(By.ID, "tools").is_displayed()
    pages = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    assert pages.count(b"/Type /Page") > 3


STANDARDS = """
const wrong = [];
const levels = [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].map((one) => Number(one.localName[1]));
levels.forEach((level, at) => { if (at && level > levels[at - 1] + 1) wrong.push(`h${levels[at - 1]} then h${level}`); });
if (levels.filter((level) => level === 1).length !== 1) wrong.push("not one h1");
const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
for (const id of new Set(ids)) if (ids.filter((one) => one === id).length > 1) wrong.push(`id ${id} twice`);
for (const link of document.querySelectorAll("a[href^='#']")) if (!document.getElementById(link.hash.slice(1))) wrong.push(`link to nothing: ${link.hash}`);
for (const name of ["main", "header", "footer", "title"]) if (document.querySelectorAll(name).length < 1) wrong.push(`no ${name}`);
if (!document.documentElement.lang || document.compatMode !== "CSS1Compat") wrong.push("lang or doctype");
for (const picture of document.querySelectorAll("svg[role=img]")) if (!picture.getAttribute("aria-label")) wrong.push("svg without name");
return wrong;
"""  # noqa: E501


@pytest.mark.parametrize("machine", ["strix-halo", "mi300x", "no-driver"])
def test_it_keeps_to_what_pages_have_to(browser: Chrome, report: Report, machine: str) -> None:
    address = report(machine)
    browser.get(address)
    assert browser.execute_script(STANDARDS) == []
    assert Path(address.removeprefix("file://")).stat().st_size < 300_000


PAGES = {
    "target": ("check", "--target", "gfx1151", "--no-probe", "--no-store"),
    "no-driver": ("check", "--machine", "no-driver", "--no-store"),
    "two-gpus": ("check", "--machine", "rx-7900-xtx-ryzen", "--no-store"),
    "doctor": ("doctor", "--machine", "wsl2"),
    "finding": ("doctor", "--machine", "strix-halo", "--explain", SAVE_AREA),
    "machine": ("machine", "show", "--machine", "strix-halo"),
    "diff": ("machine", "diff", "strix-halo", "rx-5600-xt"),
    "targets": ("targets",),
    "wheels": ("wheel", "choose", "torch", "--target", "gfx1151", "--all"),
    "entry": ("kb", "show", SAVE_AREA),
    "matrix": ("kb", "matrix", "library"),
    "kernels": ("kernels", "list"),
    "rule": ("port", "--explain", "CU13"),
    "plan": ("lab", "plan", str(EXPERIMENTS / "strix-halo-load-hang.toml")),
    "port": ("port", str(PROJECT), "--target", "gfx1151"),
}
"""Commands by the kind of page that they write."""

WRONG = """
const wrong = [], name = (one) => one.textContent.trim().slice(0, 60);
if (document.scrollingElement.scrollWidth > innerWidth) wrong.push(`page: ${document.scrollingElement.scrollWidth}`);
for (const one of document.querySelectorAll("pre.wraps")) if (one.scrollWidth > one.clientWidth) wrong.push(`command: ${name(one)}`);
for (const one of document.querySelectorAll("table.many:not(.figures *)")) if (one.scrollWidth > one.parentElement.clientWidth + 40) wrong.push(`table: ${name(one)}`);
for (const one of document.querySelectorAll("svg svg > text")) {
  const at = one.getBoundingClientRect(), frame = one.parentElement.querySelector("rect").getBoundingClientRect();
  if (at.width && (at.right > frame.right || at.left < frame.left)) wrong.push(`label: ${name(one)}`);
}
for (const one of document.querySelectorAll("main section")) if (![...one.children].some((part) => !/^H[2-6]$/.test(part.tagName) && name(part))) wrong.push(`empty: ${name(one)}`);
return wrong;
"""  # noqa: E501


def _scheme(browser: Chrome, name: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": name}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


@pytest.mark.parametrize("kind", PAGES)
def test_every_kind_of_page_can_be_read_at_every_width_in_both_schemes(
    browser: Chrome, tmp_path: Path, kind: str
) -> None:
    from rocmend.cli.main import main

    with pytest.raises(SystemExit):
        main([*PAGES[kind], "-o", str(tmp_path / "page.html")])
    browser.get((tmp_path / "page.html").as_uri())
    for scheme in ("light", "dark"):
        _scheme(browser, scheme)
        assert (scheme, browser.execute_script(CONTRASTS)) == (scheme, [])  # it opens every fold
    for width in (390, 820, 1440):
        _size(browser, width)
        assert (width, browser.execute_script(WRONG)) == (width, [])
    assert browser.execute_script(STANDARDS) == []


CUT = """
const cut = [];
for (const card of document.querySelectorAll(".picture.plot")) {
  const room = card.getBoundingClientRect(), drawn = card.querySelector(".plotted > svg + svg");
  const own = drawn.getBoundingClientRect(), seen = getComputedStyle(drawn).overflow === "visible" ? room : own;
  for (const one of drawn.querySelectorAll("text, svg > *:not(title)")) {
    const at = one.getBoundingClientRect();
    if (at.width && (at.left < seen.left || at.right > seen.right)) cut.push(`${card.textContent.trim().slice(0, 20)}: ${one.tagName}`);
  }
}
for (const one of document.querySelectorAll("table.dense:not(.figures *) tbody th")) if (one.offsetHeight > 60) cut.push(`row: ${one.textContent}`);
return cut;
"""  # noqa: E501


def test_benchmarks_can_be_read_at_every_width_in_both_schemes(browser: Chrome, tmp_path: Path) -> None:
    from rocmend.cli.main import main

    runs = Runs(STRIX)
    keep(tmp_path / "evidence.sqlite", [runs.gemm(), runs.memory(), runs.llama(), runs.mlx()], runs.machine)
    with pytest.raises(SystemExit):
        main(["report", "--store", str(tmp_path / "evidence.sqlite"), "-o", str(tmp_path / "page.html")])
    browser.get((tmp_path / "page.html").as_uri())
    assert len(browser.find_elements(By.CSS_SELECTOR, ".plotted")) == 2 + 3 + 2 + 2
    for scheme in ("light", "dark"):
        _scheme(browser, scheme)
        assert (scheme, browser.execute_script(CONTRASTS)) == (scheme, [])
    for width in (390, 820, 1440):
        _size(browser, width)
        assert (width, browser.execute_script(WRONG), browser.execute_script(CUT)) == (width, [], [])


@pytest.mark.parametrize("width", [390, 820, 1440])
def test_no_label_of_a_timeline_is_cut_and_none_is_lost(browser: Chrome, tmp_path: Path, width: int) -> None:
    spans = (Span("start", 0, 0.02), Span("load", 0.02, 0.021), Span("upload", 0.021, 1, Tone.ERROR))
    halves = (Span("reading the weights", 0, 0.5), Span("computing", 0.5, 1))
    rows = (TimelineRow("baseline", spans, "hang"), TimelineRow("other", halves, "pass"))
    page = tmp_path / "timeline.html"
    page.write_text(html.render(Document("t", blocks=(Timeline(rows, "Phases"),))))
    _size(browser, width)
    browser.get(page.as_uri())
    assert browser.execute_script(WRONG) == []
    names = ["start 20 ms, load 1 ms, upload 0.979 s", "reading the weights 0.5 s, computing 0.5 s"]
    assert _shown(browser, ".names") == names[: 2 if width == 390 else 1]
    assert "upload 0.979 s" in _shown(browser, "svg text")
    assert ("reading the weights 0.5 s" in _shown(browser, "svg text")) == (width > 390)
