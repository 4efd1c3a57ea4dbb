// The pane of details: the step, sizes, the kernel, why it stops, the source.

// ---- details: the step --------------------------------------------------------------------

const section = (title, ...content) => h("section", {}, h("h3", {}, title), ...content);

function showStep() {
  const panel = $("panel-step"), at = now.at;
  if (at === 0) {
    panel.replaceChildren(h("h2", {}, "The program as it was lowered"),
      h("p", { class: "lead quiet" }, "every operator is a loop of its own, and what passes between two loops passes through global memory: these are the buffered edges, in red. Fusing makes them disappear, one step at a time."),
      section("Numbers at these sizes", metricTable(null, numbers(0))), section("Traffic", tensorTable(null, 0)), section("Whole derivation", ...proofLines(data.proof)));
    return;
  }
  if (move()) { showMove(panel); return; }
  const { rule, level, description, roles } = step(), about = data.rules[rule];
  const { from, born } = step(), before = numbers(from), after = numbers(at), saved = before.bytes - after.bytes;
  panel.replaceChildren(...[
    h("h2", {}, `${at}  ${rule}`),
    h("div", { class: "chips" },
      about.number ? h("span", { class: "chip" }, `rule ${about.number} of the paper`) : h("span", { class: "chip" }, rule === "safe" ? "the paper's appendix" : "a rule of ours"),
      h("span", { class: "chip" }, about.kind), h("span", { class: "chip code" }, level),
      isSnapshot(at) ? h("span", { class: "chip" }, `snapshot ${data.snapshots.indexOf(at) + 1}`) : null),
    born ? h("p", { class: "born" }, born, ".") : null,
    h("p", { class: "lead" }, about.lead), h("p", {}, about.why),
    section("Here",
      roles.length ? h("dl", { class: "roles" }, roles.flatMap(([role, place]) => [h("dt", {}, role), h("dd", {}, h("button", { type: "button", class: "link", "data-role-place": place, onclick: () => lookBefore(place) }, lineOf(from, place)))])) : null,
      roles.length ? null : h("p", {}, description)),
    section("Saved at these sizes", h("p", { class: "saved" },
      h("strong", { id: "saved", "data-value": saved, class: saved > 0 ? "less" : saved < 0 ? "more" : "quiet" }, saved < 0 ? `−${short(-saved, true)}` : short(saved, true)),
      h("span", { class: "quiet" }, saved > 0 ? `of ${short(before.bytes, true)} moved` : saved < 0 ? "moves more: it repeats work, so that a later step can save" : "moves as much as before")),
    metricTable(before, after)),
    section("Traffic per tensor", tensorTable(from, at)),
    about.conditions.length ? section("Side conditions, all met", h("ul", { class: "checks" }, about.conditions.map(([name, text]) => h("li", {}, h("span", {}, text, h("small", {}, name)))))) : null,
    section("Proof", ...proofLines(step().proof)),
  ].filter(Boolean));
}

/** A move of the kernel: what it is for, and what the kernel asks of a device before and after. */
function showMove(panel) {
  const { move: name, line, lead, why, proof } = move(), at = now.at - last;
  const [before, after] = [data.moves.states[at - 1].cost, data.moves.states[at].cost];
  const most = (counts) => Math.max(0, ...counts), sum = (counts) => counts.reduce((total, count) => total + count, 0);
  const rows = [
    ["elements moved", (cost) => cost.elements, false], ["kernels", (cost) => cost.programs.length, false],
    ["programs, all kernels", (cost) => sum(cost.programs), false], ["shared memory, about", (cost) => most(cost.shared), true],
  ].map(([label, of, isBytes]) => h("tr", { "data-cost": label }, h("td", {}, label),
    before ? cell(of(before), isBytes, { class: "before" }) : h("td", { class: "quiet before" }, "–"),
    after ? cell(of(after), isBytes, { class: "after" }) : h("td", { class: "quiet after" }, "–"),
    h("td", { class: "change" }, before && after ? change(of(before), of(after), isBytes) : "")));
  panel.replaceChildren(...[
    h("h2", {}, `${now.at}  ${name}`),
    h("div", { class: "chips" }, h("span", { class: "chip" }, "a move of the kernel"), line ? h("span", { class: "chip code" }, line) : null),
    h("p", { class: "lead" }, lead), h("p", {}, why),
    section("What the kernel asks, at the sizes it was written for",
      h("div", { class: "table" }, h("table", { id: "costs" }, h("thead", {}, h("tr", {}, ["", "before", "after", "change"].map((text) => h("th", {}, text)))), h("tbody", {}, rows))),
      before && after ? null : h("p", { class: "quiet" }, "Nothing is counted before every dim is cut into blocks.")),
    section("The block program", h("p", { class: "quiet" }, "stays as it is: moves change order, place and time, and no value.")),
    at === 1 && data.moves.lowered ? section("Proof of the lowering to tiles", ...proofLines(data.moves.lowered)) : null,
    section("Proof", ...proofLines(proof)),
  ].filter(Boolean));
}

function lineOf(at, place) {
  const text = data.states[at].text, index = strings(text.places).indexOf(place);
  return index < 0 ? place : strings([text.lines[index]])[0].trim().replace(/ \{$/, "");
}

function lookBefore(place) {
  now.side = "before";
  showSide();
  now.selected = "";
  select(place);
}

function metricTable(before, after) {
  const rows = ["bytes", "loads", "stores", "edges", "footprint", "matrix", "vector"].map((metric) => {
    const [name, isBytes] = METRICS[metric];
    return h("tr", { "data-metric": metric }, h("td", {}, name), before ? cell(before[metric], isBytes, { class: "before" }) : null,
      cell(after[metric], isBytes, { class: "after" }), before ? h("td", { class: "change" }, change(before[metric], after[metric], isBytes)) : null);
  });
  const head = before ? ["", "before", "after", "change"] : ["", "here"];
  return h("div", { class: "table" }, h("table", { id: "numbers" }, h("thead", {}, h("tr", {}, head.map((text) => h("th", {}, text)))), h("tbody", {}, rows)));
}

function tensorTable(from, to) {
  const after = numbers(to), before = from === null ? null : numbers(from);
  const pairs = before ? data.steps[to - 1].tensors : data.states[to].tensors.map((_, index) => [null, index]);
  const rows = pairs.map(([i, j]) => {
    const tensor = j === null ? data.states[from].tensors[i] : data.states[to].tensors[j];
    const old = i === null ? null : before.tensors[i], young = j === null ? null : after.tensors[j];
    return { tensor, old, young, same: before && old && young && ["loads", "stores", "bytes"].every((what) => old[what] === young[what]) };
  });
  const moved = rows.filter((row) => !row.same), same = rows.filter((row) => row.same);
  const two = (row, what, isBytes) => {
    const number = row.young ? row.young[what] : 0, was = before ? (row.old ? row.old[what] : 0) : number;
    const props = { "data-value": number, "data-before": was, class: what };
    if (was === number) return h("td", props, number ? short(number, isBytes) : "–");
    return h("td", props, h("span", { class: "old" }, `${short(was, isBytes)} → `), h("span", { class: number < was ? "less" : "more" }, short(number, isBytes)));
  };
  const line = (row) => h("tr", { "data-tensor": row.tensor.name },
    h("td", row.young && row.tensor.place ? { "data-place": row.tensor.place, title: row.tensor.kind } : { title: row.tensor.kind }, h("code", {}, row.tensor.name), h("span", { class: "quiet" }, [row.tensor.kind === "interior" ? "" : ` ${row.tensor.kind}`, row.tensor.own ? ` ${row.tensor.own}` : ""].join(""))),
    two(row, "loads", false), two(row, "stores", false), two(row, "bytes", true));
  const group = (text) => h("tr", { class: "group" }, h("td", { colspan: 4 }, text));
  return h("div", { class: "table" }, h("table", { id: "tensors" },
    h("thead", {}, h("tr", {}, ["tensor", "loads", "stores", "bytes"].map((text) => h("th", {}, text)))),
    h("tbody", {}, moved.map(line), before && !moved.length ? group("no tensor moves more or less") : null, same.length ? group(`${same.length} as before`) : null, same.map(line))));
}

function proofLines(proof) {
  if (!proof) return [h("p", { class: "quiet" }, "not proved: the page was made without proofs")];
  const word = proof.equal === true ? "Shown equal" : proof.equal === false ? "Shown different" : "Not settled";
  return [
    h("p", {}, h("strong", { class: proof.equal ? "proven" : "unproven" }, word), ` in tier ${proof.tier}; ${proof.bound_in_words}`),
    h("p", { class: "quiet lead" }, `${proof.reason}. ${proof.trials} trials.${proof.assumptions.length ? ` Assumed: ${proof.assumptions.join("; ")}.` : ""}`),
  ];
}

// ---- details: sizes -------------------------------------------------------------------------

function buildSizes() {
  const grid = h("div", { class: "sizes" }, ["dim", "size", "", "blocks", ""].map((text) => h("span", { class: "head" }, text)));
  for (const dim of dims) {
    const name = dim.name, top = Math.max(16, Math.ceil(Math.log2(dim.size)));
    const set = (table, text) => { const number = Math.round(Number(text)); if (number >= 1) { table[name] = Math.min(number, 2 ** 24); update(); } };
    grid.append(h("span", { class: "name" }, name));
    if (dim.follows) grid.append(h("span", { class: "quiet" }, "follows"), h("output", { "data-size": name }));
    else grid.append(
      h("input", { type: "range", min: 0, max: top, step: 1, "aria-label": `size of ${name}, in powers of two`, "data-size-slider": name, oninput: (event) => set(sizes, 2 ** event.target.value) }),
      h("input", { type: "number", min: 1, "aria-label": `size of ${name}`, "data-size": name, onchange: (event) => set(sizes, event.target.value) }));
    if (dim.unit) grid.append(h("span", { class: "quiet" }, "one each"), h("output", { "data-blocks": name }));
    else grid.append(
      h("input", { type: "range", min: 0, max: top, step: 1, "aria-label": `blocks of ${name}, in powers of two`, "data-blocks-slider": name, oninput: (event) => set(blocks, 2 ** event.target.value) }),
      h("input", { type: "number", min: 1, "aria-label": `blocks of ${name}`, "data-blocks": name, onchange: (event) => set(blocks, event.target.value) }));
  }
  const dtype = h("select", { id: "dtype", onchange: (event) => { now.dtype = event.target.value; update(); } },
    Object.keys(data.element_bytes).map((name) => h("option", { value: name, selected: name === now.dtype }, name)));
  $("panel-sizes").replaceChildren(h("h2", {}, "Sizes and blocks"),
    h("p", { class: "quiet" }, "Every number on this page is a closed form, computed here from these; kernels stay those of the sizes with which it was made. A size need not be a multiple of its blocks."),
    section("Dims", grid, h("div", { class: "row" }, h("label", { for: "dtype" }, "elements are "), dtype,
      h("button", { type: "button", id: "reset", onclick: () => { resetSizes(); update(); } }, "Reset"))),
    section("The program at these sizes", h("div", { id: "totals", class: "table" })));
}

function showSizes() {
  for (const { name } of dims) {
    for (const [what, table] of [["size", sizes], ["blocks", blocks]]) {
      const number = document.querySelector(`[data-${what}="${name}"]`);
      if (number) number.value = table[name];
      const slider = document.querySelector(`[data-${what}-slider="${name}"]`);
      if (slider && document.activeElement !== slider) slider.value = Math.round(Math.log2(table[name]));
      if (slider) slider.setAttribute("aria-valuetext", String(table[name]));
    }
  }
  const columns = ["bytes", "loads", "flops", "footprint"];
  const states = [0, ...data.snapshots.filter((at) => at > 0), ...(data.snapshots.includes(last) ? [] : [last])];
  const snapshot = (at) => `snapshot ${data.snapshots.indexOf(at) + 1}`;
  const other = ({ rule, from }) => (rule !== "safe" ? "what runs" : isSnapshot(from) ? `${snapshot(from)}, made safe` : "made safe");
  const name = (at) => (at === 0 ? "start" : isSnapshot(at) ? snapshot(at) : other(data.steps[at - 1])) + (at === data.chosen.state && data.chosen.kernels && isSnapshot(at) ? ", which runs" : "");
  const row = (label, at) => h("tr", { "data-state": at }, h("td", {}, h("button", { type: "button", class: "link", onclick: () => go(at) }, label)), columns.map((metric) => cell(numbers(at)[metric], METRICS[metric][1], { class: metric })));
  $("totals").replaceChildren(h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, ""), columns.map((metric) => h("th", {}, METRICS[metric][0])))),
    h("tbody", {}, states.map((at) => row(name(at), at)), states.includes(Math.min(now.at, last)) ? null : row(`step ${now.at}`, now.at))));
}

// ---- details: kernel, reasons, source --------------------------------------------------------

let wholeFile = false;

function buildKernel() {
  const { lines, places, missing, kernels, tiles, target } = data.kernel;
  if (missing) { $("panel-kernel").replaceChildren(h("p", { class: "message" }, `No Triton file was written.\n${missing}`)); return; }
  const text = strings(lines), place = strings(places);
  const body = h("div", { class: "lines scroll", tabindex: 0 });
  const show = () => body.replaceChildren(...(wholeFile ? [[0, text.length]] : kernels).map(([begin, end]) => lineList(text.slice(begin, end), place.slice(begin, end), "kernel", { first: begin + 1 })));
  const toggle = h("button", { type: "button", id: "whole", "aria-pressed": "false", onclick: () => { wholeFile = !wholeFile; toggle.setAttribute("aria-pressed", wholeFile); show(); } }, "Whole file");
  const copy = h("button", { type: "button", onclick: async () => { try { await navigator.clipboard.writeText(`${text.join("\n")}\n`); copy.textContent = "Copied"; } catch { copy.textContent = "Not allowed"; } } }, "Copy");
  const blocked = Object.entries(tiles).map(([dim, lanes]) => `${dim} ${lanes}`).join(", ");
  $("panel-kernel").replaceChildren(
    h("div", { class: "bar" }, h("span", { class: "quiet" }, `${kernelsInWords()}; ${data.dtype}, ${target}${blocked ? `, tiles ${blocked}` : ""}`), h("span", { class: "grow" }), toggle, copy), h("p", { class: "chosen" }, whyChosen()), body);
  show();
}

/** At which sizes it was chosen, and among what. */
function whyChosen() {
  const at = Object.entries(data.chosen.sizes).map(([dim, size]) => `${dim} ${size}`).join(", ");
  return `At ${at}: ${data.chosen.words}.`;
}

function buildWhy() {
  const panel = $("panel-why"), { left } = data, { kernels, stored } = data.chosen;
  const reasons = left.map((edge) => h("li", {},
    h("div", {}, h("button", { type: "button", class: "link", "data-place": edge.place }, `${edge.producer} → ${edge.consumer}`)),
    h("div", { class: "chips" }, edge.rule ? h("span", { class: "chip" }, edge.rule) : null, h("span", { class: "chip code" }, edge.level), h("span", { class: "chip code" }, edge.type)),
    h("p", {}, edge.reason)));
  panel.replaceChildren(...[
    h("h2", {}, "Why it stops here"),
    h("p", { class: "lead" }, `${kernelsInWords()}.`),
    kernels ? h("p", { class: "quiet" }, whyChosen()) : h("p", { class: "quiet" }, data.kernel.missing),
    stored.length ? section("What is stored between kernels", h("ul", { class: "reasons stored" }, stored.map((text) => h("li", {}, text)))) : null,
    left.length
      ? section(`${left.length} buffered ${left.length === 1 ? "edge" : "edges"} left`, h("p", { class: "quiet" }, "For each: the nearest rule, and what it refused."), h("ul", { class: "reasons" }, reasons))
      : h("p", { class: "after" }, "No buffered edge is left inside the program, and no rule finds anything more to do."),
  ].filter(Boolean));
}

function buildSource() {
  const { source } = data;
  $("panel-source").replaceChildren(...(source
    ? [h("div", { class: "bar" }, h("span", { class: "quiet" }, `${source.file}:${source.first}`)), h("div", { class: "lines scroll", tabindex: 0 }, lineList(source.lines, [], "source", { first: source.first }))]
    : [h("p", { class: "message" }, "The source text is not at hand: the program was read from its text form, or its file is gone.")]));
}
