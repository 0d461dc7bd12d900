"use strict";
// The topology: providers, regions and clusters as nested details, whose content is drawn when they are opened.
const makeTopology = ({ title, amount, showWorkload, tree, scale, state }) => {
  const OPEN = 60; // clusters up to which everything is open
  const BATCH = 100; // entries drawn at once
  const SHORT = { memory: "mem" };
  const PLACES = { provider: "(no provider)", region: "(no region)" };
  const REMOVED = { provider: "removed from the fleet", region: "no document any more" };

  const empty = () => ({ clusters: 0, workloads: 0, stays: 0, gained: 0, lost: 0, arrive: [], leave: [], change: [], keep: [], down: 0, more: false, hadMore: false });
  const size = (replicas) => Number.parseInt(replicas, 10) || 0; // marked ones are text: "2+" is a minimum, "?" is not known

  // What each cluster has after the plan, and what arrives and leaves with it, of the filtered rows.
  const count = ({ columns, rows }) => {
    const totals = new Map(columns.map(({ index }) => [index, empty()]));
    for (const row of rows) {
      for (const column of new Set([...row.now.keys(), ...row.then.keys()])) {
        const total = totals.get(column);
        if (!total) continue;
        const [now, then] = [row.now.get(column), row.then.get(column)];
        const [after, before] = [size(now), size(then)];
        total.more ||= typeof now === "string";
        total.hadMore ||= typeof then === "string";
        total.stays += Math.min(after, before);
        total.gained += Math.max(after - before, 0);
        total.lost += Math.max(before - after, 0);
        total.workloads += now === undefined ? 0 : 1;
        (now === undefined ? total.leave : then === undefined ? total.arrive : now === then ? total.keep : total.change).push(row);
      }
    }
    return totals;
  };

  const add = (totals) => totals.reduce((sum, each) => {
    sum.clusters += each.clusters || 1;
    for (const name of ["stays", "gained", "lost", "down", "workloads"]) sum[name] += each[name];
    for (const name of ["arrive", "leave", "change"]) sum[name] = sum[name].concat(each[name]);
    for (const name of ["more", "hadMore"]) sum[name] ||= each[name];
    return sum;
  }, empty());

  // A bar of parts `[class, width in percent]`; the text beside it says the same.
  const bar = (parts) => {
    const node = make("span", null, { class: "bar", "aria-hidden": "true" });
    for (const [kind, width] of parts) {
      if (width <= 0) continue;
      const part = make("span", null, { class: kind });
      part.style.width = `${Math.max(width, 0.8)}%`;
      node.append(part);
    }
    return node;
  };

  const replicaBar = (total, most) => {
    const share = (number) => 100 * number / Math.max(most, 1);
    return bar([["keep", share(total.stays)], ["gain", share(total.gained)], ["loss", share(total.lost)]]);
  };
  const replicaText = (total) => {
    const [before, after] = [total.stays + total.lost, total.stays + total.gained];
    const [earlier, later] = [[before, total.hadMore], [after, total.more]].map(([number, more]) => `${number.toLocaleString("en")}${more ? "+" : ""}`);
    const text = `${later} replica${later === "1" ? "" : "s"}`;
    return before === after || !(total.gained || total.lost) ? text : `${earlier} → ${text}`;
  };
  const flowText = (total, changed) => {
    const node = make("span", null, { class: "flow" });
    if (total.arrive.length) node.append(make("span", `+${plural(total.arrive.length, "workload")}`, { class: "new" }));
    if (total.leave.length) node.append(make("span", `−${plural(total.leave.length, "workload")}`, { class: "old" }));
    if (total.change.length) node.append(make("span", `${total.change.length} ${changed}`, { class: "turn" }));
    return node;
  };
  const measure = (label, drawn, text) => {
    const node = make("span", null, { class: label ? "measure" : "measure unnamed" });
    node.append(...(label ? [make("span", label, { class: "soft" })] : []), drawn, make("span", text, { class: "amount" }));
    return node;
  };

  // Replace the content of a list by entries, some at once and the others by a button.
  const fill = (list, entries, draw, noun) => {
    let drawn = 0;
    const more = make("button", null, { class: "plain", type: "button" });
    const step = (moveFocus) => {
      const nodes = entries.slice(drawn, drawn + BATCH).map(draw);
      list.append(...nodes);
      drawn += nodes.length;
      more.remove();
      if (drawn < entries.length) {
        const item = make("li");
        more.textContent = `Show ${Math.min(BATCH, entries.length - drawn)} of ${entries.length - drawn} more ${noun}`;
        item.append(more);
        list.append(item);
      }
      if (moveFocus) nodes[0].querySelector("button, summary").focus();
    };
    more.addEventListener("click", () => { more.parentElement.remove(); step(true); });
    step(false);
  };

  const places = (cells, without) => [...cells].filter(([index]) => index !== without)
    .map(([index, replicas]) => state.clusters[index].name + (replicas === null ? "" : ` ${replicas}`)).join(", ");

  // A workload whose change is withheld runs where it was.
  const runsOn = (row) => row.withheld === 1 && row.then.size > 0;

  const workloadItem = (row, column, kind) => {
    const item = make("li");
    const button = make("button", title(row), { class: "name", type: "button" });
    button.addEventListener("click", () => showWorkload(row, column));
    const [now, then] = [row.now.get(column), row.then.get(column)];
    const number = kind === "arrive" ? now : kind === "leave" ? then : null;
    const sign = { arrive: "+", leave: "−", change: "", keep: "" }[kind];
    const size = kind === "change" ? `${amount(then)} → ${amount(now)}` : kind === "keep" ? amount(now) : `${sign}${number === null ? "" : number}`;
    item.append(make("span", size, { class: `place ${{ arrive: "new", leave: "old", change: "turn", keep: "" }[kind]}` }), " ", button);
    if (row.withheld === 1) item.append(" ", make("span", "withheld", { class: "withheld" }));
    const others = kind === "leave" ? places(row.now, column) : kind === "arrive" ? places([...row.then].filter(([index]) => !row.now.has(index) || size(row.now.get(index)) < size(row.then.get(index))), column) : "";
    const target = others ? `on ${others}` : "nowhere";
    const left = runsOn(row) ? ` ${target}, if allowed; runs in ${plural(row.then.size, "cluster")}` : ` now ${target}`;
    if (others || kind === "leave") item.append(make("span", kind === "leave" ? left : ` from ${others}`, { class: "soft" }));
    return item;
  };

  const clusterContent = (cluster, index, total) => {
    const box = make("div", null, { class: "inside" });
    const facts = [cluster.zones && `zone ${cluster.zones.join(", ")}`, ...(cluster.resources || []).map(([name, , , text]) => `${name}: ${text}`)].filter(Boolean);
    if (cluster.unavailable) box.append(make("p", `${cluster.removed ? "Removed" : cluster.drained ? "Drained" : "Not available"}: ${cluster.unavailable}`, { class: cluster.drained && !cluster.removed ? "warning" : "error" }));
    const reported = [cluster.applied, cluster.observed].filter(Boolean);
    if (reported.length) box.append(make("p", `This cluster ${reported.join("; it ")}.`));
    if (facts.length) box.append(make("p", facts.join(" · "), { class: "soft" }));
    if (cluster.labels.length) box.append(make("p", cluster.labels.join(" · "), { class: "soft" }));
    for (const [kind, heading] of [["arrive", "Arriving"], ["leave", "Leaving"], ["change", "Scaled"], ["keep", "Staying"]]) {
      if (!total[kind].length) continue;
      const list = make("ul", null, { class: "moves" });
      fill(list, total[kind], (row) => workloadItem(row, index, kind), "workloads");
      box.append(make("p", `${heading} (${total[kind].length})`, { class: "heading" }), list);
    }
    if (box.childElementCount === 0) box.append(make("p", "Nothing runs here.", { class: "soft" }));
    return box;
  };

  const details = (level, summary, content, open) => {
    const node = make("details", null, { class: level });
    node.append(summary);
    const drawContent = () => {
      if (node.open && node.childElementCount === 1) node.append(content());
    };
    node.addEventListener("toggle", drawContent);
    if (open) {
      node.open = true;
      drawContent();
    }
    return node;
  };

  const clusterItem = ({ cluster, index }, total, most) => {
    const summary = make("summary");
    const name = make("span", null, { class: "site" });
    name.append(make("span", cluster.name, { class: "cluster-name" }));
    if (cluster.zones) name.append(make("span", ` ${cluster.zones[0]}${cluster.zones.length > 1 ? ` +${cluster.zones.length - 1}` : ""}`, { class: "soft zone", title: cluster.zones.join(", ") }));
    if (cluster.unavailable) name.append(make("span", cluster.removed ? "removed" : cluster.drained ? "drained" : "not available", { class: `${cluster.drained && !cluster.removed ? "turn" : "old"} badge` }));
    if (cluster.earlier) name.append(make("span", cluster.earlier, { class: "turn badge" }));
    summary.append(name, measure("", replicaBar(total, most), replicaText(total)));
    const uses = make("span", null, { class: "uses" });
    for (const [resource, used, change, words] of cluster.resources || []) {
      const planned = Math.max(0, Math.min(100, (used || 0) + change));
      const width = used !== null && used + change > 100 ? [["over", 100]] : used === null ? [] : [["use", Math.min(planned, used)], [change < 0 ? "loss" : "gain", Math.abs(planned - Math.min(100, used))]];
      const node = used === null ? make("span", words.replace(" allocatable", ""), { class: "soft" }) : measure(SHORT[resource] || resource, bar(width), `${Math.max(0, Math.round((used || 0) + change))} %`);
      node.title = words;
      uses.append(node);
    }
    summary.append(uses, flowText(total, "scaled"));
    const item = make("li");
    item.append(details("cluster", summary, () => clusterContent(cluster, index, total), false));
    return item;
  };

  const groupBy = (entries, field) => {
    const found = new Map();
    for (const entry of entries) {
      const name = entry.cluster.removed ? REMOVED[field] : entry.cluster[field] || "";
      found.set(name, [...(found.get(name) || []), entry]);
    }
    const rank = (name) => (name === "") + 2 * (name === REMOVED[field]);
    return [...found].sort(([left], [right]) => rank(left) - rank(right) || left.localeCompare(right, "en"));
  };
  const zoneOf = ({ cluster }) => (cluster.zones || []).join(", ");

  const groupItem = (field, name, total, content, open) => {
    const summary = make("summary");
    const site = make("span", null, { class: "site" });
    const words = [plural(total.clusters, "cluster"), plural(total.zones || 0, "zone")].slice(0, total.zones > 1 ? 2 : 1);
    site.append(make("span", name || PLACES[field], { class: "group-name" }), make("span", ` ${words.join(", ")}`, { class: "soft" }));
    if (total.drained) site.append(make("span", `${total.drained} drained`, { class: "turn badge" }));
    if (total.down) site.append(make("span", `${total.down} not available`, { class: "old badge" }));
    summary.append(site, make("span", replicaText(total), { class: "amount" }), flowText(total, "changed inside"));
    const item = make("li");
    item.append(details(field, summary, content, open));
    return item;
  };
  const sumOf = (entries, totals) => {
    const sum = add(entries.map(({ index }) => totals.get(index)));
    const away = entries.filter(({ cluster }) => cluster.unavailable && !cluster.removed);
    sum.drained = away.filter(({ cluster }) => cluster.drained).length;
    sum.down = away.length - sum.drained;
    sum.zones = new Set(entries.flatMap(({ cluster }) => cluster.zones || [])).size;
    for (const name of ["arrive", "leave", "change"]) sum[name] = [...new Set(sum[name])];
    // What moves inside of the group neither arrives nor leaves.
    const inside = new Set(entries.map(({ index }) => index));
    const had = (row) => [...row.then.keys()].some((index) => inside.has(index));
    const has = (row) => [...row.now.keys()].some((index) => inside.has(index));
    const moved = [...new Set([...sum.arrive, ...sum.leave])];
    sum.change = [...new Set([...sum.change, ...moved.filter((row) => had(row) && has(row))])];
    sum.arrive = sum.arrive.filter((row) => !had(row));
    sum.leave = sum.leave.filter((row) => !has(row));
    return sum;
  };
  const sizeOf = (total) => total.stays + total.gained + total.lost;

  const draw = (chosen) => {
    const totals = count(chosen);
    const open = chosen.columns.length <= OPEN;
    const root = make("ul", null, { class: "places" });
    const providers = groupBy(chosen.columns, "provider").map(([name, entries]) => ({ name, entries, total: sumOf(entries, totals) }));
    const regionsOf = (entries) => groupBy(entries, "region").map(([name, inner]) => ({ name, entries: inner, total: sumOf(inner, totals) }));
    const most = Math.max(0, ...[...totals.values()].map(sizeOf)); // one scale for all bars
    scale.textContent = most ? `A full bar is ${plural(most, "replica")}.` : "";
    fill(root, providers, (provider) => groupItem("provider", provider.name, provider.total, () => {
      const regions = make("ul", null, { class: "places" });
      const found = regionsOf(provider.entries);
      fill(regions, found, (region) => groupItem("region", region.name, region.total, () => {
        const clusters = make("ul", null, { class: "places" });
        const ordered = [...region.entries].sort((left, right) => zoneOf(left).localeCompare(zoneOf(right), "en") || left.cluster.name.localeCompare(right.cluster.name, "en"));
        fill(clusters, ordered, (entry) => clusterItem(entry, totals.get(entry.index), most), "clusters");
        return clusters;
      }, open || found.length === 1 && provider.entries.length <= OPEN), "regions");
      return regions;
    }, open || providers.length === 1), "providers");
    const unplaced = chosen.rows.filter((row) => row.state !== "gone" && !row.now.size);
    for (const [name, color, nowhere] of [["Unplaced", "old", unplaced.filter((row) => !runsOn(row))], ["Unplaced, if allowed", "turn", unplaced.filter(runsOn)]]) {
      if (!nowhere.length) continue;
      const summary = make("summary");
      const site = make("span", null, { class: "site" });
      site.append(make("span", name, { class: "group-name" }), make("span", plural(nowhere.length, "workload"), { class: `${color} badge` }));
      summary.append(site);
      const item = make("li");
      item.append(details("provider", summary, () => {
        const box = make("div", null, { class: "inside" });
        const list = make("ul", null, { class: "moves" });
        fill(list, nowhere, (row) => {
          const entry = workloadItem(row, undefined, row.then.size ? "leave" : "keep");
          entry.firstChild.remove();
          return entry;
        }, "workloads");
        box.append(list);
        return box;
      }, open && nowhere.length <= BATCH));
      root.append(item);
    }
    tree.replaceChildren(root);
    return totals;
  };
  return { draw, count, clusterContent };
};
