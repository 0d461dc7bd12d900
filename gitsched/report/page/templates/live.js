(() => {
  const status = document.getElementById("live-status");
  const version = document.body.dataset.version;
  const isBusy = () => {
    const dialog = document.querySelector("dialog[open]");
    const filters = document.getElementById("filters");
    const filtered = filters && [...new FormData(filters).values()].some((value) => value !== "");
    const opened = document.querySelector("details.cluster[open]");
    return Boolean(dialog || filtered || opened || filters && filters.contains(document.activeElement));
  };
  const show = (text, kind) => {
    status.textContent = text;
    status.className = `live ${kind}`;
  };
  show("connecting", "waiting");
  let last = null; // when the last run ended, and the last one that succeeded, by the clock of this machine
  const ago = (since) => {
    const seconds = Math.max(0, Math.round((Date.now() - since) / 1000));
    return seconds < 90 ? `${seconds} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
  };
  const failure = document.getElementById("live-failure");
  const showAge = () => {
    if (last === null) return;
    document.getElementById("live-age").textContent = `Last run ${ago(last.ran)} ago${last.error ? ": failed" : ""}.`;
    document.getElementById("live-since").textContent = last.error && last.succeeded !== null ? `This page shows the run that succeeded ${ago(last.succeeded)} ago.` : "";
  };
  setInterval(showAge, 1_000);
  const events = new EventSource("events");
  events.addEventListener("open", () => show("live", "connected"));
  events.addEventListener("error", () => show("not connected, trying again", "waiting"));
  events.addEventListener("run", (event) => {
    const { age, error = "", succeeded, time } = JSON.parse(event.data);
    const shown = document.getElementById("run-time");
    if (shown) shown.textContent = shown.dateTime = time;
    last = { ran: Date.now() - 1000 * age, succeeded: succeeded === undefined ? null : Date.now() - 1000 * succeeded, error };
    failure.hidden = !error;
    document.getElementById("live-reason").textContent = error ? `The last run failed: ${error}` : ""; // announced once, unlike the age
    showAge();
  });
  events.addEventListener("change", (event) => {
    const change = JSON.parse(event.data);
    if (change.version === version) return;
    if (!isBusy()) {
      location.reload();
      return;
    }
    show("", "changed");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "plain";
    button.textContent = "The fleet has changed: show it";
    button.addEventListener("click", () => location.reload());
    status.replaceChildren(button);
  });
})();
