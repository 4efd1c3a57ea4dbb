// Moving about: which state is shown, keys, buttons, and the start.

// ---- moving about --------------------------------------------------------------------------

function press(group, chosen) {
  $(group).querySelectorAll("button").forEach((button) => button.setAttribute("aria-pressed", button.dataset.value === chosen));
}

function showSide() {
  press("side", now.side);
  $("side").querySelector("button").disabled = now.at === 0;
  now.focus = "";
  showPicture();
  showText();
}

function go(at) {
  const to = clamp(at, 0, end);
  now.at = to;
  now.selected = "";
  now.zoom = null;
  if (to === 0) now.side = "after";
  $("slider").value = to;
  $("slider").setAttribute("aria-valuetext", `${to} of ${end}: ${nameOf(to)}`);
  showSteps();
  const current = $("steps").querySelector("[aria-current]");
  if ($("steps").clientHeight) reveal(current, $("steps"));
  $("first").disabled = $("back").disabled = to === 0;
  $("last").disabled = $("on").disabled = to === end;
  history.replaceState(null, "", address(page, to));
  showStep();
  showSizes();
  drawCurve();
  showSide();
  $("panel-step").scrollTop = 0;
  const program = numbers(Math.min(to, last));
  const words = move() ? `Move ${to - last} of ${end - last}: ${move().line || move().move}.` : to ? `Step ${to} of ${end}: ${nameOf(to)} at ${step().level}.` : `Start, ${end} steps follow.`;
  $("live").textContent = `${words} ${short(program.bytes, true)} moved, ${program.edges} buffered edges.`;
}

function update() {
  settle();
  showSizes();
  showStep();
  drawCurve();
}

function open(tab) {
  now.tab = tab;
  document.querySelectorAll("[role=tab]").forEach((button) => {
    const on = button.id === `tab-${tab}`;
    button.setAttribute("aria-selected", on);
    button.tabIndex = on ? 0 : -1;
    $(button.getAttribute("aria-controls")).hidden = !on;
  });
  const wide = tab === "kernel" || tab === "simulation";
  if (wide) enlarge(false);
  document.querySelector("main").toggleAttribute("data-wide", wide);
  if (tab === "kernel" && now.at < last) { now.form = "loops"; now.side = "after"; press("form", now.form); go(last); } else { drawCurve(); showPicture(); }
}

function play(on) {
  clearInterval(now.timer);
  now.timer = on ? setInterval(() => { if (now.at === end) play(false); else go(now.at + 1); }, 1100) : null;
  $("play").textContent = on ? "Stop" : "Play";
  if (on && now.at === end) go(0);
}

const KEYS = {
  ArrowLeft: () => go(now.at - 1), ArrowRight: () => go(now.at + 1), Home: () => go(0), End: () => go(end),
  " ": () => play(!now.timer),
  b: () => { if (now.at) { now.side = now.side === "before" ? "after" : "before"; showSide(); } },
  e: () => enlarge(),
  "[": () => deepen(-1), "]": () => deepen(1),
  p: () => { if (plan) showPlan(!document.body.hasAttribute("data-plan")); },
  "/": () => { showPlan(false); $("search").focus(); },
  "+": () => zoom(1.25), "-": () => zoom(1 / 1.25), 0: () => zoom(0),
  Escape: () => { if (now.selected) select(now.selected); else if (now.focus) focus(parent(now.focus)); $("help").hidden = true; },
};

function enlarge(on = $("enlarge").getAttribute("aria-pressed") !== "true") {
  $("enlarge").setAttribute("aria-pressed", on);
  document.querySelector("main").toggleAttribute("data-large", on);
  now.zoom = null;
  showPicture();
}

function deepen(by) {
  if (data.pictures.missing) return;
  const most = Math.max(album().whole.length - 1, 0);
  const from = typeof now.depth === "number" ? now.depth : by < 0 ? most + 1 : -1;
  now.depth = clamp(Math.min(from, by < 0 ? most + 1 : most) + by, 0, most);
  now.focus = "";
  now.zoom = null;
  showPicture();
}

function listen() {
  $("first").onclick = KEYS.Home; $("back").onclick = KEYS.ArrowLeft; $("on").onclick = KEYS.ArrowRight; $("last").onclick = KEYS.End;
  $("play").onclick = KEYS[" "];
  $("slider").max = end;
  $("slider").oninput = (event) => go(Number(event.target.value));
  $("metric").onchange = (event) => { now.metric = event.target.value; drawCurve(); };
  $("depth").onchange = (event) => { const { value: wanted } = event.target; now.depth = wanted === AUTO || wanted === PLACE ? wanted : Number(wanted); now.zoom = null; showPicture(); };
  $("smaller").onclick = () => zoom(1 / 1.25); $("larger").onclick = () => zoom(1.25); $("fit").onclick = () => zoom(0);
  $("enlarge").onclick = () => enlarge();
  $("side").onclick = (event) => { if (event.target.dataset.value) { now.side = event.target.dataset.value; showSide(); } };
  $("form").onclick = (event) => { if (event.target.dataset.value) { now.form = event.target.dataset.value; press("form", now.form); showText(); } };
  $("help-button").onclick = () => { $("help").hidden = !$("help").hidden; $("help-button").setAttribute("aria-expanded", !$("help").hidden); };
  document.addEventListener("click", (event) => {
    if (event.target.closest("#help, #help-button")) return;
    $("help").hidden = true;
    $("help-button").setAttribute("aria-expanded", false);
  });
  document.querySelectorAll("[role=tab]").forEach((tab, index, tabs) => {
    tab.onclick = () => open(tab.id.slice(4));
    tab.onkeydown = (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by) return;
      event.stopPropagation();
      const next = tabs[(index + by + tabs.length) % tabs.length];
      next.focus();
      open(next.id.slice(4));
    };
  });
  zooming($("canvas"), zoom);
  zooming($("plan-canvas"), zoomPlan);
  $("search").oninput = () => search(0);
  $("search").onkeydown = (event) => {
    if (event.key === "Enter") search(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") { $("search").value = ""; search(0); $("search").blur(); }
  };
  linking($("text"));
  linking($("panel-kernel"), () => last);
  linking($("panel-why"), () => data.chosen.state);
  linking($("panel-step"), () => now.at);
  $("canvas").addEventListener("mouseover", (event) => { const at = event.target.closest("[data-place]"); link(at ? at.dataset.place : now.selected); });
  $("canvas").addEventListener("mouseleave", () => link(now.selected));
  const enter = (event) => {
    const at = event.target.closest("[data-place]");
    if (!at) return;
    const { place } = at.dataset;
    if (place !== now.focus && place in album().maps) focus(place); else select(place);
  };
  $("canvas").addEventListener("click", enter);
  $("canvas").addEventListener("keydown", (event) => { if (event.key === "Enter") enter(event); });
  document.addEventListener("keydown", (event) => {
    const { target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || target.matches("select, input")) return;
    if (document.body.hasAttribute("data-plan") && !"p/".includes(event.key.toLowerCase())) return planKey(event);
    if (event.key === " " && target.matches("button, a")) return;
    const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (act) { event.preventDefault(); act(); }
  });
  window.addEventListener("resize", () => { drawCurve(); showPicture(); zoomPlan(0); });
  window.addEventListener("hashchange", fromHash);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => theme(event.matches));
  $("theme").onclick = () => theme(document.documentElement.dataset.theme !== "dark");
}

const address = (derivation, at) => (derivation ? `#${derivation}/${at}` : `#${at}`);

function fromHash() {
  const wanted = addressed();
  if (wanted.page !== page && wanted.at !== undefined) location.reload();
  else if (wanted.at !== undefined) { showPlan(false); go(wanted.at); }
  else if (location.hash === "#plan") showPlan(true);
  return wanted.at !== undefined;
}

function theme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  $("theme").textContent = dark ? "Light" : "Dark";
}

function showHead() {
  $("title").textContent = data.title;
  const count = data.snapshots[data.snapshots.length - 1], proof = data.proof;
  const parts = [`${count} ${count === 1 ? "step" : "steps"}, ${data.snapshots.length} ${data.snapshots.length === 1 ? "snapshot" : "snapshots"}`];
  parts.push(kernelsInWords());
  $("summary").replaceChildren(parts.join(" · "));
  if (proof) $("summary").append(" · ", h("span", { class: proof.equal ? "proven" : "unproven" }, proof.equal ? "shown equal to its start" : proof.equal === false ? "different from its start" : "equality not settled"), proof.equal ? `, ${proof.bound_in_words}` : "");
}

theme(matchMedia("(prefers-color-scheme: dark)").matches);
resetSizes();
settle();
showHead();
buildSteps();
buildSizes();
buildKernel();
buildSimulation();
buildWhy();
buildSource();
listen();
press("form", now.form);
open("step");
buildPlan();
if (!fromHash()) {
  go(0);
  showPlan(plan !== null && !plan.missing);
}
