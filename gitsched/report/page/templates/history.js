(() => {
  const form = document.getElementById("filters");
  const count = document.getElementById("history-count");
  const none = document.getElementById("history-none");
  const marks = new Map([...document.querySelectorAll(".axis a")].map((mark) => [mark.getAttribute("href").slice(1), mark]));
  const entries = [...document.querySelectorAll(".entry")].map((node) => ({
    node,
    day: node.querySelector("time").dateTime.slice(0, 10),
    mark: marks.get(node.id),
    commit: `${node.querySelector(".what").textContent} ${node.querySelector(".log").textContent}`.toLowerCase(),
    rows: [...node.querySelectorAll("tbody tr")].map((row) => ({
      row, workload: row.cells[0].textContent.toLowerCase(), clusters: row.cells[1].textContent.toLowerCase(),
    })),
  }));
  let marked = ""; // the id of the entry that the time axis led to
  const draw = () => {
    const wanted = new FormData(form);
    const words = (name) => String(wanted.get(name) || "").toLowerCase().split(/\s+/).filter(Boolean);
    const match = (text, needles) => needles.every((needle) => text.includes(needle));
    const [workload, cluster, commit] = ["workload", "cluster", "commit"].map(words);
    const [since, until] = [wanted.get("since") || "", wanted.get("until") || "9999"];
    let commits = 0;
    let moves = 0;
    for (const entry of entries) {
      let found = 0;
      for (const { row, workload: name, clusters } of entry.rows) {
        row.hidden = !(match(name, workload) && match(clusters, cluster));
        found += row.hidden ? 0 : 1;
      }
      entry.node.hidden = !match(entry.commit, commit) || entry.day < since || entry.day > until || (workload.length + cluster.length > 0 && !found);
      entry.mark?.classList.toggle("left-out", entry.node.hidden);
      if (entry.node.hidden) continue;
      commits += 1;
      moves += found;
      if (workload.length + cluster.length > 0) for (const moved of entry.node.querySelectorAll(".moved")) moved.open = true;
    }
    if (marks.size && ![...marks.values()].some((link) => link.tabIndex === 0 && !link.classList.contains("left-out"))) {
      chooseMark([...marks.values()].findLast((link) => !link.classList.contains("left-out")));
    }
    for (const section of document.querySelectorAll(".timeline section")) section.hidden = !section.querySelector(".entry:not([hidden])");
    const left = entries.length - commits;
    none.hidden = commits > 0 || !entries.length;
    const [asked, named] = [["workload", "cluster"], ["commit"]].map((names) => names.map((name) => String(wanted.get(name) || "").trim()).filter(Boolean).join(", "));
    const time = [named && `with "${named}"`, wanted.get("since") && `since ${wanted.get("since")}`, wanted.get("until") && `until ${wanted.get("until")}`].filter(Boolean).join(" ");
    none.firstElementChild.textContent = `${["No commit of this page", time, asked && `changed ${asked}`].filter(Boolean).join(" ")}.`;
    count.textContent = `${plural(commits, "commit")}, ${plural(moves, "change")}${left ? `; the filter leaves out ${plural(left, "commit")}` : ""}`;
  };

  // The address names what the filter shows, and the entry that the time axis led to.
  const mark = (id) => {
    marked = id;
    for (const { node } of entries) node.classList.toggle("here", node.id === id);
    const node = id && document.getElementById(id);
    if (!node) return;
    node.tabIndex = -1;
    node.focus({ preventScroll: true });
    node.scrollIntoView({ block: "center" });
  };
  const address = makeAddress((wanted) => {
    for (const field of form.elements) if (field.name) field.value = wanted.get(field.name) || "";
    draw();
    mark(wanted.get("at") || "");
  });
  const keepAddress = (isNew = false) => {
    const params = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (value) params.set(name, value);
    if (marked) params.set("at", marked);
    address.write(params, isNew);
  };
  for (const [id, link] of marks) link.addEventListener("click", (event) => {
    event.preventDefault();
    mark(id);
    keepAddress(true);
  });
  // One mark is in the order of the tab key; the arrow keys lead to the others.
  const chooseMark = (chosen) => { for (const link of marks.values()) link.setAttribute("tabindex", link === chosen ? "0" : "-1"); };
  chooseMark([...marks.values()].at(-1));
  document.querySelector(".axis svg")?.addEventListener("keydown", (event) => {
    const shown = [...marks.values()].filter((link) => !link.classList.contains("left-out"));
    const at = shown.indexOf(event.target);
    const next = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: shown.length - 1 }[event.key];
    if (at < 0 || !shown[next] || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    chooseMark(shown[next]);
    shown[next].focus();
  });
  form.addEventListener("input", () => { draw(); keepAddress(); });
  none.lastElementChild.addEventListener("click", () => form.reset());
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { draw(); mark(""); keepAddress(); }));

  const NAMES = ["time", "commit", "summary", "name", "change", "reason"];
  const text = (node) => node ? node.textContent.trim() : "";
  const rowsShown = () => entries.filter(({ node }) => !node.hidden).flatMap(({ node, rows }) => {
    const common = { time: node.querySelector("time").dateTime, commit: text(node.querySelector(".log code")), summary: text(node.querySelector(".title")) };
    const shown = rows.filter(({ row }) => !row.hidden).map(({ row }) => ({
      ...common, name: text(row.cells[0]), change: row.querySelector(".place") ? [...row.querySelectorAll(".place")].map(text).join("; ") : text(row.cells[1]), reason: text(row.cells[2]),
    }));
    return shown.length ? shown : [{ ...common, name: "", change: "", reason: "" }];
  });
  document.getElementById("save-csv").addEventListener("click", () => saveFile("history.csv", "text/csv", writeCsv([NAMES, ...rowsShown().map((row) => NAMES.map((name) => row[name]))])));
  document.getElementById("save-json").addEventListener("click", () => saveFile("history.json", "application/json", `${JSON.stringify(rowsShown(), null, 2)}\n`));
  form.hidden = false;
  addCopyButtons(document);
  openTargets();
  if (!location.hash || location.hash.startsWith("#?")) address.apply();
})();
