"use strict";
// The search of a page of tables and lists: it shows the rows and items that have all words.
(() => {
  const form = document.getElementById("finder");
  const count = document.getElementById("found-count");
  const entries = [...document.querySelectorAll("main tbody tr, main li")].map((node) => ({ node, words: node.textContent.toLowerCase() }));
  if (!entries.length) return;
  const draw = () => {
    const needles = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { node, words } of entries) {
      node.hidden = !needles.every((needle) => words.includes(needle));
      shown += node.hidden ? 0 : 1;
    }
    count.textContent = needles.length ? `${shown.toLocaleString("en")} of ${entries.length.toLocaleString("en")} rows and items` : "";
  };
  form.addEventListener("input", draw);
  form.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName || "");
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    form.elements.text.focus();
  });
  form.hidden = false;
})();
