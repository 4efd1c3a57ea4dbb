// The plan of the whole program: its kernels, the arrays between them, and why it was cut there.

function showPlan(on) {
  document.body.toggleAttribute("data-plan", on);
  $("plan-view").hidden = !on;
  $("plan-button").setAttribute("aria-pressed", on);
  if (on) { play(false); history.replaceState(null, "", "#plan"); zoomPlan(0); return; }
  history.replaceState(null, "", address(page, now.at));
  drawCurve();
  showPicture();
}

function zoomPlan(factor, at) {
  if (factor) zoomBy($("plan-canvas"), factor, at); else fitInto($("plan-canvas"));
}

function planKey(event) {
  const by = { "+": 1.25, "-": 1 / 1.25, 0: 0 }[event.key];
  if (by !== undefined) zoomPlan(by);
  if (event.key === "ArrowRight" || event.key === "ArrowLeft") showPlan(false);
}

/** The derivation of a part's kernels: here, or by another load of this page. */
function openPart(number) {
  const [wanted] = plan.parts[number - 1].pages;
  if (wanted === undefined) return; // a call of a library has none
  openStep(wanted, 0);
}

function buildPlan() {
  $("plan-button").hidden = plan === null;
  if (!plan) return;
  $("plan-button").onclick = () => showPlan(!document.body.hasAttribute("data-plan"));
  if (plan.missing) { $("plan-list").replaceChildren(h("p", { class: "message" }, plan.missing)); return; }
  const total = plan.parts.reduce((sum, part) => sum + (part.us ?? 0), 0);
  $("plan-list").replaceChildren(...[
    h("h2", {}, plan.head),
    plan.alone ? null : h("p", { class: "row" }, h("button", { type: "button", id: "whole-program", onclick: () => { if (page) location.hash = address(0, 0); else showPlan(false); } }, "The derivation of the whole program as one")),
    section("Kernels and library calls, in order", h("ol", { class: "kernels" }, plan.parts.map((part, at) => partItem(part, at + 1, total)))),
    section("Why it is cut: arrays that pass through memory", plan.stored.length ? h("ul", {}, plan.stored.map((text) => h("li", {}, text))) : h("p", { class: "quiet" }, "None does.")),
    section("How the plan was found", h("ul", {}, plan.search.map((text) => h("li", {}, text)))),
  ].filter(Boolean));
  const canvas = $("plan-canvas");
  if (!plan.picture) { canvas.replaceChildren(h("p", {}, data.pictures.missing)); return; }
  const svg = document.importNode(new DOMParser().parseFromString(plan.picture, "image/svg+xml").documentElement, true);
  svg.setAttribute("role", "group");
  svg.setAttribute("aria-label", "Picture of the plan");
  for (const box of svg.querySelectorAll("[data-part]")) {
    const { part } = box.dataset;
    if (plan.parts[part - 1].pages.length) {
      box.setAttribute("tabindex", 0);
      box.setAttribute("role", "button");
      box.setAttribute("aria-label", `Derivation of kernel program ${part}`);
    }
    box.onclick = () => openPart(part);
    box.onkeydown = (event) => { if (event.key === "Enter") openPart(part); };
    box.onmouseenter = () => $("plan-list").querySelector(`[data-item="${part}"]`).classList.add("linked");
    box.onmouseleave = () => $("plan-list").querySelector(`[data-item="${part}"]`).classList.remove("linked");
  }
  textsOnTop(svg);
  canvas.replaceChildren(svg);
}

/** What fusing gave a part: the steps that matter, each a way to its place in the derivation. */
function gained(part) {
  if (!part.gains.length) return [];
  return [h("ul", { class: "gains" }, part.gains.map(({ page: wanted, step: at, text }) => h("li", {},
    h("button", { type: "button", "data-step": at, title: `Step ${at} of its derivation`, onclick: () => openStep(wanted, at) }, text))))];
}

function openStep(wanted, at) {
  if (wanted === page) { showPlan(false); go(at); } else location.hash = address(wanted, at);
}

function partItem(part, number, total) {
  const kernels = part.library.length ? `calls ${part.library.join(", ")}` : part.kernels === 1 ? "1 kernel" : `${part.kernels} kernels`;
  const share = part.us === null ? 0 : (part.us / total) * 100;
  return h("li", { "data-item": number },
    h("span", { class: "time" }, part.time ?? "not predicted"),
    h("strong", {}, `${number}. ${part.computes}`),
    h("span", { class: "share", role: "img", "aria-label": `${share.toFixed(0)}% of the time` }, h("i", { style: `width:${share}%` })),
    h("div", { class: "quiet" }, [kernels, part.limits.length ? `limited by ${part.limits.join(" and ")}` : "", `reads ${part.reads.join(", ")}`, `writes ${part.writes.join(", ")}`].filter(Boolean).join("; ")),
    ...gained(part),
    ...part.pages.map((wanted, at) => h("button", { type: "button", class: "link", onclick: () => openStep(wanted, 0) }, part.pages.length > 1 ? `Open derivation ${at + 1}` : "Open its derivation")),
  );
}
