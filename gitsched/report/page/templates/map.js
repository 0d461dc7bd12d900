"use strict";
// The map of the fleet: a tile for each cluster, by provider and region, coloured by its load before or after the plan.
const makeMap = ({ box, legend, tools, state, showCluster }) => {
  const NAMED = 60; // clusters up to which tiles have names
  const LARGE = 300; // and up to which they have space for a mark
  const MOST = 5_000; // tiles that are drawn
  const measured = state.clusters.some((cluster) => (cluster.resources || []).some(([, used]) => used !== null));
  // Without a known capacity, the cluster with the most replicas is not full: it has no colour of a warning.
  const STEPS = measured
    ? [[90, "load-4", "90 % and more"], [75, "load-3", "75 to 90 %"], [50, "load-2", "50 to 75 %"], [25, "load-1", "25 to 50 %"], [0, "load-0", "less"]]
    : [[67, "load-3", "67 % and more"], [33, "load-1", "33 to 67 %"], [0, "load-0", "less"]];
  const REMOVED = "removed from the fleet";
  const ADDED = "not in the fleet before this change";
  const LAST = [REMOVED, ADDED];
  let shown = { columns: [], totals: new Map() };

  const loadsOf = (cluster, total, most) => {
    if (!measured) return ["lost", "gained"].map((side) => 100 * (total.stays + total[side]) / Math.max(most, 1));
    const known = (cluster.resources || []).filter(([, used]) => used !== null);
    if (!known.length) return [null, null];
    return [Math.max(...known.map(([, used]) => used)), Math.max(0, ...known.map(([, used, change]) => used + change))];
  };
  // Placed workloads request more than the cluster reports, so that this is the least that is requested.
  const isLeast = (cluster, load, isBefore) => (cluster.resources || []).some(([, used, change, , least]) => least && used !== null && (isBefore ? used : used + change) === load);
  const stepOf = (load) => load === null ? "load-none" : STEPS.find(([least]) => load >= least || least === 0)[1];

  const makeTile = ({ cluster, index }, total, most, isBefore) => {
    const [before, after] = loadsOf(cluster, total, most);
    const load = isBefore ? before : after;
    // Where the state before is not known, a cluster that loses workloads with this change was available.
    const wasDown = cluster.wasDown === undefined ? Boolean(cluster.unavailable) && !cluster.removed && !total.leave.length : Boolean(cluster.wasDown);
    const isDown = isBefore ? wasDown : Boolean(cluster.unavailable);
    const isDrained = isDown && Boolean(cluster.drained) && !cluster.removed; // people want that: it is no failure
    const words = [
      load === null ? "load not known" : `${isLeast(cluster, load, isBefore) ? "at least " : ""}${Math.round(load)} %`,
      before !== null && !isBefore && Math.round(before) !== Math.round(after) ? `before ${Math.round(before)} %` : "",
      isBefore && cluster.added ? "not in the fleet" : isDown ? (cluster.removed && !isBefore ? "removed" : isDrained ? "drained" : "not available") : "",
      isBefore && !cluster.removed && isDown !== Boolean(cluster.unavailable) ? `${isDown ? "available" : cluster.drained ? "drained" : "not available"} after this change` : "",
      cluster.earlier || "",
      isBefore ? "" : total.arrive.length ? `+${plural(total.arrive.length, "workload")}` : "",
      isBefore ? "" : total.leave.length ? `−${plural(total.leave.length, "workload")}` : "",
    ].filter(Boolean).join(", ");
    const isBad = isDown && !isDrained || load !== null && measured && load > 100;
    const change = isBefore ? "" : total.lost > total.gained || total.leave.length > total.arrive.length ? " loses" : total.gained || total.arrive.length ? " gains" : "";
    const tile = make("button", null, {
      class: `tile ${stepOf(load)}${load !== null && Math.round(load) === 0 ? " vacant" : ""}${isBad ? " bad" : isDrained ? " drained" : ""}${change}`, type: "button", tabindex: -1, title: `${cluster.name}: ${words}`, "aria-label": `${cluster.name}: ${words}`,
    });
    if (shown.columns.length <= NAMED && load !== null) tile.style.setProperty("--level", `${Math.min(load, 100)}%`);
    if (shown.columns.length <= NAMED) tile.append(make("span", cluster.name, { class: "tile-name" }), make("span", `${isBad ? "! " : ""}${load === null ? "?" : `${Math.round(load)} %`}`));
    else if (isBad && shown.columns.length <= LARGE) tile.textContent = "!";
    tile.addEventListener("click", () => showCluster(index));
    return tile;
  };

  const redraw = () => {
    const { columns, totals } = shown;
    const isBefore = tools.querySelector("[name=side]:checked").value === "before";
    const most = Math.max(0, ...columns.map(({ index }) => { const total = totals.get(index); return total.stays + Math.max(total.lost, total.gained); }));
    const places = new Map();
    for (const entry of columns.slice(0, MOST)) {
      const place = entry.cluster.removed && !isBefore ? REMOVED : entry.cluster.added && isBefore ? ADDED : [entry.cluster.provider, entry.cluster.region].filter(Boolean).join(" · ") || "(no region)";
      if (!places.has(place)) places.set(place, []);
      places.get(place).push(entry);
    }
    const nodes = [...places].sort(([left], [right]) => LAST.includes(left) - LAST.includes(right) || left.localeCompare(right, "en", { numeric: true })).map(([place, entries]) => {
      const node = make("div", null, { class: "map-place", role: "group", "aria-label": place });
      const tiles = make("div", null, { class: "tiles" });
      tiles.append(...entries.map((entry) => makeTile(entry, totals.get(entry.index), most, isBefore)));
      node.append(make("p", `${place} (${entries.length.toLocaleString("en")})`, { class: "soft" }), tiles);
      return node;
    });
    if (columns.length > MOST) nodes.push(make("p", `And ${plural(columns.length - MOST, "cluster")} more: use the filter.`));
    box.className = `map ${columns.length <= NAMED ? "named" : columns.length <= LARGE ? "large" : "small"}`;
    box.replaceChildren(...nodes);
    const first = box.querySelector(".tile");
    if (first) first.tabIndex = 0;
    const of = measured ? "the share of a resource that is requested, of the one with the largest share, as the cluster reports or, where that is more, as placed workloads request" : `replicas, of the ${most.toLocaleString("en")} of the largest cluster`;
    const keys = [...STEPS].reverse().map(([, kind, words]) => {
      const pair = make("span", null, { class: "pair" });
      pair.append(make("span", null, { class: `key ${kind}` }), words);
      return pair;
    });
    const signs = [...(measured ? [["load-none", "not known"]] : []), ["gains", "gains"], ["loses", "loses"], ...(columns.some(({ cluster }) => cluster.drained) ? [["drained", "drained"]] : []), ["bad", measured ? "not available, or more is requested than it has" : "not available"]].map(([kind, words]) => {
      const pair = make("span", null, { class: "pair sign" });
      pair.append(make("span", kind === "bad" && columns.length <= LARGE ? "!" : null, { class: `key tile-key ${kind}${kind === "bad" && columns.length > LARGE ? " tile" : ""}` }), words);
      return pair;
    });
    legend.replaceChildren(make("span", `How full a tile is: ${of}.`, { class: "soft" }), ...keys, ...signs);
  };

  // One tile is in the order of the tab key; the arrow keys lead to the others.
  box.addEventListener("keydown", (event) => {
    const tiles = [...box.querySelectorAll(".tile")];
    const at = tiles.indexOf(event.target);
    if (at < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
    const own = tiles[at].getBoundingClientRect();
    const nearest = (found) => found.reduce((best, tile) => {
      const distance = (one) => { const place = one.getBoundingClientRect(); return Math.abs(place.top - own.top) * 1000 + Math.abs(place.left - own.left); };
      return !best || distance(tile) < distance(best) ? tile : best;
    }, null);
    const next = {
      ArrowRight: () => tiles[at + 1], ArrowLeft: () => tiles[at - 1], Home: () => tiles[0], End: () => tiles[tiles.length - 1],
      ArrowDown: () => nearest(tiles.slice(at + 1).filter((tile) => tile.getBoundingClientRect().top > own.top + 1)),
      ArrowUp: () => nearest(tiles.slice(0, at).filter((tile) => tile.getBoundingClientRect().top < own.top - 1)),
    }[event.key];
    const tile = next && next();
    if (!tile) return;
    tiles[at].tabIndex = -1;
    tile.tabIndex = 0;
    tile.focus();
    event.preventDefault();
  });
  tools.addEventListener("change", redraw);
  return (chosen) => {
    shown = chosen;
    redraw();
  };
};
