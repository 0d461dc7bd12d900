const drawFleet = (data) => {
  const text = (number) => data.texts[number];
  const BATCH = 100; // rows drawn at once
  const CELLS = 20_000; // cells drawn at once
  const MOST_CELLS = 250_000; // cells drawn in all: more would make the browser slow
  const ORDERED = 60; // clusters up to which the matrix has them in the order of their names
  const CELL = 2.6; // least width of a column, in rem; that of names depends on the style
  const DIGIT = 0.52; // width of a character in a cell, in rem
  const form = document.getElementById("filters");
  const frame = document.getElementById("fleet-window");
  const count = document.getElementById("fleet-count");
  const limit = document.getElementById("fleet-limit");
  const dialog = document.getElementById("why");
  let columns = [];
  let rows = [];
  let totals = new Map();
  let shownRows = new Set();
  let drawn = 0;
  let body = null;
  let opened = ""; // what the dialog is about

  const title = (row) => `${row.kind} ${row.namespace ? `${row.namespace}/` : ""}${row.name}`;
  const amount = (replicas) => (replicas === null ? "✓" : String(replicas));

  // Replicas of each workload by column, before and after.
  for (const row of data.workloads) {
    row.state ||= "placed";
    row.now = new Map(row.after);
    row.then = row.before ? new Map(row.before) : row.now;
    row.going = new Set(row.leaving || []);
    row.text = title(row).toLowerCase();
    if (row.why) row.why.candidates = data.candidates[row.why.candidates];
  }

  const cellOf = (row, column) => {
    const now = row.now.get(column);
    const then = row.then.get(column);
    if (now === undefined && then === undefined) return row.going.has(column) ? ["old", "−", "evicting"] : null;
    if (now === undefined) return ["old", `−${then === null ? "" : then}`, row.going.has(column) ? "evicting" : "removed"];
    if (then === undefined) return ["new", `+${now === null ? "" : now}`, "new"];
    if (now !== then) return ["turn", `${amount(then)}→${amount(now)}`, "changed"];
    return ["here", amount(now), ""];
  };

  const chosen = () => {
    const wanted = new FormData(form);
    const words = (name) => String(wanted.get(name) || "").toLowerCase().split(/\s+/).filter(Boolean);
    const match = (haystack, needles) => needles.every((needle) => haystack.includes(needle));
    const places = words("cluster");
    columns = data.clusters
      .map((cluster, index) => ({ cluster, index }))
      .filter(({ cluster }) => !wanted.get("region") || cluster.region === wanted.get("region"))
      .filter(({ cluster }) => match([cluster.name, cluster.provider, ...cluster.labels].join(" ").toLowerCase(), places));
    const seen = new Set(columns.map(({ index }) => index));
    const narrowed = columns.length < data.clusters.length;
    const names = words("workload");
    rows = data.workloads
      .filter((row) => !wanted.get("namespace") || row.namespace === wanted.get("namespace").slice(1))
      .filter((row) => !wanted.get("state") || ({ changed: row.before, withheld: row.withheld })[wanted.get("state")] || row.state === wanted.get("state"))
      .filter((row) => match(row.text, names))
      .filter((row) => !narrowed || [...row.now.keys(), ...row.then.keys()].some((column) => seen.has(column)));
    if (wanted.get("empty") || wanted.get("state") === "changed") {
      const used = new Set(rows.flatMap((row) => [...row.now.keys(), ...row.then.keys(), ...row.going]));
      columns = columns.filter(({ index }) => used.has(index));
    }
  };

  // In a large fleet the matrix begins where something is: changed workloads first, and clusters in the order in which the rows use them.
  const arrange = () => {
    const order = new Map();
    rows = [...rows].sort((left, right) => Boolean(right.before) - Boolean(left.before));
    for (const row of rows) for (const column of [...row.then.keys(), ...row.now.keys(), ...row.going]) if (!order.has(column)) order.set(column, order.size);
    const rank = ({ index }) => order.get(index) ?? order.size + index;
    columns = [...columns].sort((left, right) => rank(left) - rank(right));
  };

  // The width of each column in rem, which has room for its longest text.
  const measureColumns = () => {
    const most = new Map();
    for (const row of rows) for (const column of new Set([...row.now.keys(), ...row.then.keys()])) most.set(column, Math.max(most.get(column) || 0, cellOf(row, column)[1].length));
    return columns.map(({ index }) => Math.max(CELL, DIGIT * ((most.get(index) || 0) + 1)));
  };

  const draw = () => {
    chosen();
    totals = topology.draw({ columns, rows });
    drawMap({ columns, totals });
    const isArranged = columns.length > ORDERED;
    if (isArranged) arrange();
    keepAddress();
    const most = Math.max(BATCH, Math.floor(MOST_CELLS / (columns.length + 1)));
    const used = new Set(rows.flatMap((row) => [...(row.withheld === 1 ? row.then : row.now).keys()])).size;
    const [shown, all] = [rows, data.workloads].map((some) => some.filter((row) => row.state !== "gone").length);
    count.textContent = (rows.length === data.workloads.length && columns.length === data.clusters.length
      ? `${plural(shown, "workload")} on ${used < columns.length ? `${used.toLocaleString("en")} of ` : ""}${plural(columns.length, "cluster")}`
      : `${shown.toLocaleString("en")} of ${plural(all, "workload")}, ${columns.length.toLocaleString("en")} of ${plural(data.clusters.length, "cluster")}`)
      + (rows.length > shown ? `, ${(rows.length - shown).toLocaleString("en")} removed` : "");
    shownRows = new Set(rows);
    limit.textContent = [
      isArranged ? "Changed workloads stand first, and clusters in the order in which the rows use them." : "",
      rows.length > most ? `The first ${most.toLocaleString("en")} workloads are shown; use the filter for the others.` : "",
    ].filter(Boolean).join(" ");
    rows = rows.slice(0, most);
    const table = make("table", null, {
      class: "grid", role: "grid", "aria-label": "Workloads by cluster",
      "aria-rowcount": rows.length + 1, "aria-colcount": columns.length + 1,
    });
    const widths = make("colgroup");
    const first = make("col");
    first.style.width = "var(--name)";
    const measured = measureColumns();
    widths.append(first, ...measured.map((width) => {
      const col = make("col");
      col.style.width = `${width}rem`;
      return col;
    }));
    table.style.width = `calc(var(--name) + ${measured.reduce((sum, width) => sum + width, 0)}rem)`;
    const head = make("tr", null, { "aria-rowindex": 1 });
    const corner = make("th", null, { scope: "col" });
    corner.append(make("span", "Workload"));
    head.append(corner, ...columns.map(({ cluster }) => {
      const cell = make("th", null, { scope: "col", title: [cluster.name, cluster.region, cluster.provider, ...cluster.labels].filter(Boolean).join("\n") });
      cell.append(make("span", cluster.name));
      return cell;
    }));
    const top = make("thead");
    top.append(head);
    body = make("tbody");
    table.append(widths, top, body);
    frame.replaceChildren(table);
    drawn = 0;
    extend();
    fillFrame();
    frame.scrollTop = 0;
    frame.scrollLeft = 0;
  };

  const extend = () => {
    const size = Math.max(10, Math.min(BATCH, Math.floor(CELLS / (columns.length + 1))));
    const more = rows.slice(drawn, drawn + size).map((row, offset) => {
      const line = make("tr", null, { "aria-rowindex": drawn + offset + 2 });
      const name = make("th", title(row), { scope: "row", title: title(row), tabindex: drawn + offset === 0 ? 0 : -1 });
      if (row.withheld === 1) name.prepend(make("span", "withheld", { class: "withheld" }), " ");
      line.append(name, ...columns.map(({ cluster, index }) => {
        const cell = cellOf(row, index);
        if (!cell) return make("td", "", { tabindex: -1 });
        const [kind, sign, word] = cell;
        return make("td", sign, { class: kind, tabindex: -1, "aria-label": `${cluster.name}: ${sign}${word ? `, ${word}` : ""}` });
      }));
      return line;
    });
    body.append(...more);
    drawn += more.length;
  };

  // Rows are drawn when the frame is scrolled, so there have to be more than it has space for.
  const fillFrame = () => { while (drawn < rows.length && frame.scrollHeight <= frame.clientHeight) extend(); };
  addEventListener("resize", fillFrame);

  const linked = makeLinks(data.links);
  const say = (content, attributes) => linked(make("p", null, attributes), content);
  const list = (lines) => lines.map((line) => say(line));
  const show = (name, parts) => {
    const close = make("button", "Close", { class: "plain close", type: "button" });
    close.addEventListener("click", () => dialog.close());
    dialog.replaceChildren(close, ...parts);
    addCopyButtons(dialog);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    if (opened === name) return;
    opened = name;
    keepAddress(true);
  };
  const showCluster = (index) => {
    const cluster = data.clusters[index];
    const everything = topology.count({ columns: [{ cluster, index }], rows: data.workloads }).get(index);
    const place = [cluster.provider, cluster.region].filter(Boolean).join(" · ");
    show(`cluster ${cluster.name}`, [make("h2", cluster.name, { id: "why-title" }), ...(place ? [make("p", place, { class: "soft" })] : []), topology.clusterContent(cluster, index, everything)]);
  };
  const explain = (row, column) => {
    const parts = [];
    parts.push(make("h2", title(row), { id: "why-title" }));
    if (row.why) parts.push(say(text(row.why.location), { class: "soft" }));
    else if (row.written && text(row.written[0])) parts.push(say(text(row.written[0]), { class: "soft" }));
    const where = (before, places, attributes) => {
      const line = make("p", before, attributes);
      for (const [index, replicas] of places) line.append(make("span", data.clusters[index].name + (replicas === null ? "" : ` ${replicas}`), { class: "place" }), " ");
      if (!places.length) line.append("nowhere");
      return line;
    };
    parts.push(make("h3", row.before ? `Planned clusters${row.withheld === 1 ? ", if allowed" : ""}` : "Clusters"), where("", row.after));
    if (row.withheld) parts.push(make("p", row.withheld === 1 ? "Withheld: a run leaves this change out until it is allowed." : "A later change of this workload is withheld: see Withheld changes.", { class: "held" }));
    if (row.before) parts.push(where(row.withheld === 1 ? "now: " : "before: ", row.before, { class: "soft" }), ...list(row.causes.map(text)));
    else if (row.reason !== undefined && text(row.reason)) parts.push(say(text(row.reason)));
    if (row.leaving) parts.push(make("p", `evicting: ${row.leaving.map((index) => data.clusters[index].name).join(", ")}`));
    if (row.written && text(row.written[1])) parts.push(make("h3", "Policy"), say(text(row.written[1])));
    if (!row.why && row.state !== "gone") {
      const why = make("p", "Why it is in these clusters, and not in others: ", { class: "soft" });
      why.append(make("code", `gitsched explain ${row.kind}/${row.name}${row.namespace ? ` -n ${row.namespace}` : ""}`, { "data-copy": "" }));
      parts.push(why);
    }
    if (row.why) {
      const asked = column === undefined ? null : data.clusters[column].name;
      const own = asked === null ? [] : row.why.candidates.filter(([, , , names]) => names.some((number) => text(number) === asked));
      if (own.length) {
        parts.push(make("h3", asked));
        parts.push(...own.map(([fits, group, reason]) => say([text(group), fits ? "fits" : "does not fit", text(reason)].filter(Boolean).join(": "))));
      }
      for (const [heading, lines] of row.why.sections) parts.push(make("h3", text(heading)), ...list(lines.map(text)));
      if (row.why.candidates.length) {
        const table = make("table", null, { class: "list" });
        const head = make("tr");
        const grouped = row.why.candidates.some(([, group]) => text(group));
        head.append(make("th", `${text(row.why.among)}s`, { scope: "col" }));
        if (grouped) head.append(make("th", "group", { scope: "col" }));
        head.append(make("th", "fits", { scope: "col" }), make("th", "reason", { scope: "col" }));
        table.append(head);
        for (const [fits, group, reason, names] of row.why.candidates) {
          const line = make("tr");
          const cell = make("td");
          if (names.length > 8) {
            const details = make("details");
            details.append(make("summary", `${names.length} ${text(row.why.among)}s`), make("p", names.map(text).join(", ")));
            cell.append(details);
          } else cell.textContent = names.map(text).join(", ");
          line.append(cell);
          if (grouped) line.append(make("td", text(group), { "data-label": "group" }));
          line.append(make("td", fits ? "yes" : "no", { "data-label": "fits" }), linked(make("td", null, { "data-label": "reason" }), text(reason)));
          table.append(line);
        }
        parts.push(make("h3", "Candidates"), table);
      }
    }
    if (document.body.dataset.version) {
      const past = make("p");
      past.append(make("a", "Its history", { href: `history#?${new URLSearchParams({ workload: title(row) })}` }));
      parts.push(past);
    }
    show(`workload ${title(row)}`, parts);
  };

  const position = (cell) => [cell.parentElement.rowIndex - 1, cell.cellIndex];
  const cellAt = (line, column) => {
    while (line >= drawn && drawn < rows.length) extend();
    const row = body.rows[Math.max(0, Math.min(line, body.rows.length - 1))];
    return row && row.cells[Math.max(0, Math.min(column, columns.length))];
  };
  const focus = (cell) => {
    if (!cell) return;
    for (const other of body.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
    cell.tabIndex = 0;
    cell.focus({ preventScroll: true });
    cell.scrollIntoView({ block: "nearest", inline: "nearest" });
    // Sticky headers cover cells that are scrolled to the edge.
    const head = frame.querySelector("thead").getBoundingClientRect();
    const box = cell.getBoundingClientRect();
    if (box.top < head.bottom) frame.scrollTop -= head.bottom - box.top;
    const name = cell.parentElement.cells[0].getBoundingClientRect();
    if (cell.cellIndex > 0 && box.left < name.right) frame.scrollLeft -= name.right - box.left;
  };
  const open = (cell) => {
    const [line, column] = position(cell);
    explain(rows[line], column > 0 ? columns[column - 1].index : undefined);
  };

  frame.addEventListener("keydown", (event) => {
    const cell = event.target.closest("tbody th, tbody td");
    if (!cell || event.ctrlKey && !["Home", "End"].includes(event.key) || event.altKey || event.metaKey) return;
    const [line, column] = position(cell);
    const moves = {
      ArrowUp: [line - 1, column], ArrowDown: [line + 1, column], ArrowLeft: [line, column - 1], ArrowRight: [line, column + 1],
      PageUp: [line - 20, column], PageDown: [line + 20, column],
      Home: [event.ctrlKey ? 0 : line, 0], End: [event.ctrlKey ? rows.length - 1 : line, columns.length],
    };
    if (event.key === "Enter" || event.key === " ") open(cell);
    else if (moves[event.key]) focus(cellAt(...moves[event.key]));
    else return;
    event.preventDefault();
  });
  frame.addEventListener("click", (event) => {
    const cell = event.target.closest("tbody th, tbody td");
    if (cell) { focus(cell); open(cell); }
  });
  frame.addEventListener("scroll", () => {
    if (drawn < rows.length && frame.scrollTop + 2 * frame.clientHeight > frame.scrollHeight) extend();
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  let pending = 0;
  form.addEventListener("input", () => {
    clearTimeout(pending);
    if (data.workloads.length * data.clusters.length < CELLS) draw();
    else pending = setTimeout(draw, 150); // a large fleet is drawn when the typing pauses
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(draw));

  for (const [id, values] of [
    ["filter-namespace", data.workloads.map((row) => `=${row.namespace}`)],
    ["filter-region", data.clusters.map((cluster) => cluster.region).filter(Boolean)],
  ]) {
    const select = document.getElementById(id);
    for (const value of [...new Set(values)].sort()) select.append(make("option", value.replace(/^=/, "") || "(none)", { value }));
  }
  const states = document.getElementById("filter-state");
  const present = new Set(data.workloads.map((row) => row.state));
  for (const [state, has] of [["changed", (row) => row.before], ["withheld", (row) => row.withheld]]) if (data.workloads.some(has)) states.append(make("option", state, { value: state }));
  for (const state of ["placed", "pending", "stale", "gone"]) if (present.has(state)) states.append(make("option", { pending: "unplaced", gone: "removed" }[state] || state, { value: state }));

  const byName = new Map(data.workloads.map((row) => [title(row), row]));
  for (const name of document.querySelectorAll("[data-workload]")) {
    const row = byName.get(name.dataset.workload);
    if (!row) continue;
    const button = make("button", name.textContent, { class: "name", type: "button" });
    button.addEventListener("click", () => explain(row));
    name.replaceChildren(button);
  }
  const topology = makeTopology({
    title, amount, showWorkload: explain, tree: document.getElementById("topology-tree"), scale: document.getElementById("bar-scale"), state: data,
  });
  const tools = document.getElementById("map-tools");
  const drawMap = makeMap({ box: document.getElementById("fleet-map"), legend: document.getElementById("map-legend"), tools, state: data, showCluster });

  // The address names what the filter and the map show, and what the dialog is about.
  const sides = [...tools.querySelectorAll("[name=side]")];
  const apply = (wanted) => {
    for (const field of form.elements) {
      if (!field.name) continue;
      if (field.type === "checkbox") field.checked = wanted.has(field.name);
      else field.value = wanted.get(field.name) || "";
      if (field.tagName === "SELECT" && field.selectedIndex < 0) field.value = "";
    }
    for (const side of sides) side.checked = side.value === (wanted.get("side") === "before" ? "before" : "after");
    opened = wanted.get("open") || "";
    draw();
    const [kind, name] = [opened.slice(0, opened.indexOf(" ")), opened.slice(opened.indexOf(" ") + 1)];
    const index = kind === "cluster" ? data.clusters.findIndex((cluster) => cluster.name === name) : -1;
    if (index >= 0) showCluster(index);
    else if (kind === "workload" && byName.has(name)) explain(byName.get(name));
    else if (dialog.open) dialog.close();
  };
  const address = makeAddress(apply);
  const keepAddress = (isNew = false) => {
    const params = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (value) params.set(name, value);
    if (sides.some((side) => side.checked && side.value === "before")) params.set("side", "before");
    if (opened) params.set("open", opened);
    address.write(params, isNew);
  };
  dialog.addEventListener("close", () => {
    opened = "";
    keepAddress();
  });
  tools.addEventListener("change", () => keepAddress());

  const rowsShown = () => [...data.workloads].filter((row) => shownRows.has(row)).flatMap((row) => {
    const cells = columns.map(({ cluster, index }) => [cluster.name, row.then.get(index), row.now.get(index)]).filter(([, before, after]) => before !== undefined || after !== undefined);
    return (cells.length ? cells : [["", undefined, undefined]]).map(([cluster, before, after]) => ({
      kind: row.kind, namespace: row.namespace, name: row.name, state: row.state, cluster, before: before === undefined ? "" : before ?? "placed", after: after === undefined ? "" : after ?? "placed", withheld: row.withheld ? "yes" : "",
    }));
  });
  document.getElementById("save-csv").addEventListener("click", () => {
    const names = ["kind", "namespace", "name", "state", "cluster", "before", "after", "withheld"];
    saveFile("placements.csv", "text/csv", writeCsv([names, ...rowsShown().map((row) => names.map((name) => row[name]))]));
  });
  document.getElementById("save-json").addEventListener("click", () => saveFile("placements.json", "application/json", `${JSON.stringify(rowsShown(), null, 2)}\n`));

  for (const id of ["fleet-tools", "fleet-help", "map-tools", "topology-help"]) document.getElementById(id).hidden = false;
  addCopyButtons(document);
  openTargets();
  makeSearch({ title, state: data, showWorkload: explain, showCluster });
  address.apply();
};
(() => {
  const MANY = 1_000_000; // workloads times clusters above which the head of the page is painted first
  const data = JSON.parse(document.getElementById("fleet-data").textContent);
  if (data.workloads.length * data.clusters.length < MANY) drawFleet(data);
  else requestAnimationFrame(() => setTimeout(() => drawFleet(data)));
})();
