"use strict";
// Nodes and counts, the address of what is shown, files of it, copies of texts, and the search over the page.
const make = (tag, content, attributes = {}) => {
  const node = document.createElement(tag);
  if (content !== undefined && content !== null) node.textContent = content;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
};
const plural = (number, one) => `${number.toLocaleString("en")} ${one}${number === 1 ? "" : "s"}`;

const makeAddress = (apply) => {
  const isOwn = () => location.hash === "" || location.hash.startsWith("#?"); // other fragments lead to a section
  const read = () => new URLSearchParams(location.hash.startsWith("#?") ? location.hash.slice(2) : "");
  addEventListener("popstate", () => { if (isOwn()) apply(read()); });
  return {
    apply: () => apply(read()),
    write: (params, isNew = false) => {
      const text = params.toString();
      if (!text && !isOwn()) return;
      const address = location.href.split("#")[0] + (text ? `#?${text}` : "");
      if (address !== location.href) history[isNew ? "pushState" : "replaceState"](null, "", address);
    },
  };
};

const saveFile = (name, type, text) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
};

const writeCsv = (lines) => lines.map((cells) => cells.map((cell) => {
  const text = String(cell ?? "");
  return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}).join(",")).join("\r\n") + "\r\n";

// Append a text to a node in which each path:line is a link; `patterns` are the addresses in the commit and in its base.
const makeLinks = (patterns) => (node, text) => {
  const PLACE = /(?<![\w/.-])((?:[\w@+][\w@+.-]*\/)*[\w@+.-]+\.(?:ya?ml|json)):(\d{1,9})(?::\d+)?(?![\w/.-])/g;
  let end = 0;
  for (const found of text.matchAll(PLACE)) {
    const pattern = text.slice(0, found.index).endsWith("was ") ? patterns.base : patterns.commit;
    if (!pattern) continue;
    const path = found[1].split("/").map(encodeURIComponent).join("/");
    node.append(text.slice(end, found.index), make("a", found[0], { href: pattern.replace("{path}", () => path).replace("{line}", found[2]), rel: "noreferrer" }));
    end = found.index + found[0].length;
  }
  node.append(text.slice(end));
  return node;
};

const addCopyButtons = (root) => {
  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = make("textarea", text);
      document.body.append(area);
      area.select();
      document.execCommand("copy"); // where a page may not write to the clipboard itself
      area.remove();
    }
  };
  const add = (node) => {
    if (node.dataset.copied !== undefined) return;
    node.dataset.copied = "";
    const button = make("button", "Copy", { class: "plain copy", type: "button" });
    button.addEventListener("click", async () => {
      await copy(node.textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2_000);
    });
    if (node.tagName === "PRE") node.before(button);
    else node.after(" ", button);
  };
  for (const node of root.querySelectorAll("[data-copy], details[open] > pre")) add(node);
  if (root === document) root.addEventListener("toggle", (event) => {
    const found = event.target.open && event.target.querySelector && event.target.querySelector(":scope > pre");
    if (found) add(found);
  }, true);
};

// What a link leads to is open, and a printed page has what is folded at the top of the page and among the changes.
const openTargets = () => {
  const open = (node) => {
    for (const details of node?.querySelectorAll(":scope > details") || []) details.open = true;
    for (let outer = node; outer; outer = outer.parentElement) if (outer.tagName === "DETAILS") outer.open = true;
  };
  const openTarget = () => open(location.hash.startsWith("#?") ? null : document.getElementById(decodeURIComponent(location.hash.slice(1))));
  addEventListener("hashchange", openTarget);
  openTarget();
  let printed = [];
  addEventListener("beforeprint", () => {
    printed = [...document.querySelectorAll(".problems details:not([open]), #changes details:not([open]), .entry .moved:not([open])")];
    for (const details of printed) details.open = true;
  });
  addEventListener("afterprint", () => { for (const details of printed) details.open = false; });
};

const makeSearch = ({ title, state, showWorkload, showCluster }) => {
  const MOST = 20; // results that are listed
  const form = document.getElementById("finder");
  const input = form.elements.text;
  const list = document.getElementById("found");
  const count = document.getElementById("found-count");
  let entries = null;

  const reveal = (node) => {
    for (let outer = node; outer; outer = outer.parentElement) if (outer.tagName === "DETAILS") outer.open = true;
    node.tabIndex = -1;
    node.focus({ preventScroll: true });
    node.scrollIntoView({ block: "center" });
  };
  const read = () => {
    const lines = (selector, kind, describe) => [...document.querySelectorAll(selector)].map((node) => ({ kind, text: describe(node), act: () => reveal(node) }));
    return [
      ...state.workloads.map((row) => ({ kind: "workload", text: title(row), act: () => showWorkload(row) })),
      ...state.clusters.map((cluster, index) => ({
        kind: "cluster", text: cluster.name, words: [cluster.region, cluster.provider, ...cluster.labels].join(" "), act: () => showCluster(index),
      })),
      ...lines("#findings tbody tr", "finding", (node) => [...node.cells].slice(1).map((cell) => cell.textContent).join(" ")),
      ...lines("#files .files summary, #files .files > p", "file", (node) => node.textContent),
      ...lines("#recorded tbody tr", "recorded decision", (node) => node.textContent),
    ].map((entry) => ({ ...entry, words: `${entry.text} ${entry.words || ""}`.toLowerCase() }));
  };
  const draw = () => {
    const needles = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!needles.length) {
      list.replaceChildren();
      count.textContent = "";
      return;
    }
    entries ||= read();
    const found = entries.filter(({ words }) => needles.every((needle) => words.includes(needle)));
    count.textContent = found.length ? `${found.length.toLocaleString("en")} found${found.length > MOST ? `, the first ${MOST} are listed` : ""}` : "Nothing found";
    list.replaceChildren(...found.slice(0, MOST).map(({ kind, text, act }) => {
      const item = make("li");
      const button = make("button", text.length > 160 ? `${text.slice(0, 160)}…` : text, { class: "name", type: "button" });
      button.addEventListener("click", act);
      item.append(make("span", kind, { class: "soft" }), " ", button);
      return item;
    }));
  };
  form.addEventListener("input", draw);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const first = list.querySelector("button");
    if (first) first.click();
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName || "") || document.querySelector("dialog[open]");
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    input.focus();
  });
  form.hidden = false;
};
