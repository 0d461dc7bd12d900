"use strict";
(() => {
  const form = document.getElementById("filters");
  const count = document.getElementById("history-count");
  const entries = [...document.querySelectorAll(".entry")].map((node) => ({
    node,
    commit: `${node.querySelector(".what").textContent} ${node.querySelector(".log").textContent}`.toLowerCase(),
    rows: [...node.querySelectorAll("tbody tr")].map((row) => ({
      row, workload: row.cells[0].textContent.toLowerCase(), clusters: row.cells[1].textContent.toLowerCase(),
    })),
  }));
  const plural = (number, one) => `${number} ${one}${number === 1 ? "" : "s"}`;
  const draw = () => {
    const wanted = new FormData(form);
    const words = (name) => String(wanted.get(name) || "").toLowerCase().split(/\s+/).filter(Boolean);
    const match = (text, needles) => needles.every((needle) => text.includes(needle));
    const [workload, cluster, commit] = ["workload", "cluster", "commit"].map(words);
    let commits = 0;
    let moves = 0;
    for (const entry of entries) {
      let found = 0;
      for (const { row, workload: name, clusters } of entry.rows) {
        row.hidden = !(match(name, workload) && match(clusters, cluster));
        found += row.hidden ? 0 : 1;
      }
      entry.node.hidden = !match(entry.commit, commit) || (workload.length + cluster.length > 0 && !found);
      if (entry.node.hidden) continue;
      commits += 1;
      moves += found;
      if (workload.length + cluster.length > 0) for (const moved of entry.node.querySelectorAll(".moved")) moved.open = true;
    }
    for (const section of document.querySelectorAll(".timeline section")) section.hidden = !section.querySelector(".entry:not([hidden])");
    count.textContent = `${plural(commits, "commit")}, ${plural(moves, "move")}`;
  };
  form.addEventListener("input", draw);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(draw));
  form.hidden = false;
})();
