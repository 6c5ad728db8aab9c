"use strict";
// Convenience alone: without it the page says all the same. Everything is built here, so nothing is left over without it.
const make = (name, text, attributes = {}) => {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};
const tools = document.getElementById("tools");
const main = document.getElementById("main");
const said = make("p", "", { class: "said", role: "status" });

// Deep links: open what the address names, and every fold around it.
const linked = () => {
  const id = location.hash.slice(1);
  try { return decodeURIComponent(id); } catch { return id; } // a lone % is no escape
};
const reveal = () => {
  let at = document.getElementById(linked());
  if (!at || at === main) return;
  const target = at;
  for (; at; at = at.parentElement) if (at.localName === "details") at.open = true;
  target.scrollIntoView();
};
addEventListener("hashchange", reveal);
addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href^='#']");
  if (link && link.hash === location.hash) reveal();
});

// The find box: hides what does not hold all the words, opens what does.
const find = make("input", "", {
  type: "search", id: "find", placeholder: "Find in this report ( / )", "aria-label": "Find in this report",
  autocomplete: "off", spellcheck: "false",
});
const UNITS = ".card, .steps > li, tbody tr, dl > div";
let opened = [];
const reset = () => {
  for (const fold of opened) fold.open = false;
  opened = [];
  CSS.highlights?.clear();
  for (const hidden of main.querySelectorAll("[data-out]")) delete hidden.dataset.out;
  said.textContent = "";
};
const filter = () => {
  reset();
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return;
  const holds = (part) => {
    const text = part?.textContent.toLowerCase() ?? "";
    return words.every((word) => text.includes(word));
  };
  const all = [...main.querySelectorAll(UNITS)];
  const units = all.filter((unit) => !unit.parentElement.closest(UNITS) && !unit.closest(".figures"));
  const found = units.filter(holds);
  for (const unit of units) if (!found.includes(unit)) unit.dataset.out = "";
  for (const part of new Set([...main.querySelectorAll("section"), ...main.children])) {
    const inside = units.filter((unit) => part.contains(unit));
    const kept = inside.length ? inside.some((unit) => found.includes(unit)) || holds(part.querySelector("h2, h3")) : holds(part);
    if (!kept) part.dataset.out = "";
  }
  for (const unit of found) {
    for (let at = unit; at !== main; at = at.parentElement) {
      const closed = at.localName === "details" && !at.open;
      if (closed && (at !== unit || found.length <= 3)) {
        at.open = true;
        opened.push(at);
      }
    }
  }
  mark(found, words);
  said.textContent = found.length ? `${found.length} of ${units.length} entries` : "Nothing found";
};
const mark = (units, words) => {
  if (!CSS.highlights) return;
  const ranges = [];
  for (const unit of units) {
    const walker = document.createTreeWalker(unit, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const text = node.data.toLowerCase();
      for (const word of words) for (let at = text.indexOf(word); at >= 0 && ranges.length < 2000; at = text.indexOf(word, at + word.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, at + word.length);
        ranges.push(range);
      }
    }
  }
  CSS.highlights.set("found", new Highlight(...ranges));
};
find.addEventListener("input", filter);
addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest?.("input")) { event.preventDefault(); find.focus(); }
  if (event.key === "Escape" && event.target === find) { find.value = ""; filter(); find.blur(); }
});

const unfold = make("button", "Open all", { type: "button" });
unfold.addEventListener("click", () => {
  const open = unfold.textContent === "Open all";
  for (const fold of main.querySelectorAll(".fold, details.card, article.card > details")) fold.open = open;
  unfold.textContent = open ? "Close all" : "Open all";
});

const theme = make("button", "", { type: "button" });
const dark = () => document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
const named = () => { theme.textContent = dark() === "dark" ? "Light" : "Dark"; theme.setAttribute("aria-label", `${theme.textContent} colours`); };
theme.addEventListener("click", () => { document.documentElement.dataset.theme = dark() === "dark" ? "light" : "dark"; named(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", named);
named();

// Copying: the clipboard where the browser has one for files, else a selection.
const copy = async (text, from) => {
  try { await navigator.clipboard.writeText(text); return true; } catch {
    getSelection().selectAllChildren(from);
    return document.execCommand("copy");
  }
};
for (const code of document.querySelectorAll(".code")) {
  const button = make("button", "Copy", { type: "button", class: "copy" });
  button.addEventListener("click", async () => {
    const inner = code.querySelector("code");
    button.textContent = (await copy(inner.textContent, inner)) ? "Copied" : "Press Ctrl+C";
    setTimeout(() => { button.textContent = "Copy"; }, 1600);
  });
  code.append(button);
}

tools.append(find, said);
if (main.querySelector(".fold, details.card")) tools.append(unfold);
tools.append(theme);
document.documentElement.classList.add("script");
reveal();
