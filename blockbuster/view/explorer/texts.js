// Lines of text with what changed, and the steps as a list and as a curve.

// ---- texts ------------------------------------------------------------------------------

const PATTERNS = {
  text: /(?<em>!\w+)|(?<u>\b(?:map|yield|return|graph|reduce|in|relabel|transpose)\b)|(?<s>#.*$)/g,
  loops: /(?<em>\b(?:load|store)\b)|(?<u>\b(?:forall|for|in range)\b)|(?<s>#.*$)/g,
  kernel: /(?<em>\btl\.(?:load|store|atomic_\w+)\b)|(?<u>\b(?:def|for|in|if|return|import|from|class|else|with)\b)|(?<s>#.*$)/g,
  tiles: /(?<em>\b(?:load|store|issue|await)\b)|(?<u>\b(?:nest|blocks|grid|warps|forall|for|in chunk|init|guard|with|ahead)\b)|(?<s>\d+\?)/g,
  source: /(?<u>\b(?:def|for|in|if|return|import|from|else|with|lambda)\b)|(?<s>#.*$)/g,
};

function colored(line, form) {
  const parts = [];
  let end = 0;
  for (const found of line.matchAll(PATTERNS[form])) {
    parts.push(line.slice(end, found.index));
    const [kind] = Object.entries(found.groups).find(([, text]) => text !== undefined);
    parts.push(h(kind, {}, found[0]));
    end = found.index + found[0].length;
  }
  return [...parts, line.slice(end)];
}

function lineList(lines, places, form, { first = 1, marks = new Map(), taken = new Set() } = {}) {
  return h("ol", {}, lines.map((line, index) => {
    const mark = marks.get(index);
    const place = places[index] || null;
    const classes = [mark, taken.has(place) ? "taken" : ""].filter(Boolean).join(" ");
    return h("li", { class: classes || null, "data-place": place },
      h("i", {}, String(first + index)), h("b", {}, mark === "come" ? "+" : mark === "gone" ? "−" : ""), h("span", {}, colored(line, form)));
  }));
}

function showText() {
  const tiles = now.at > last, pane = $("text");
  const text = tiles ? data.moves.states[now.at - last - (now.side === "before" ? 1 : 0)] : data.states[shown()][now.form];
  const changes = tiles ? text : step() ? step().changes[now.form] : {};
  $("form").hidden = tiles;
  if (text.missing) {
    pane.replaceChildren(h("p", { class: "message" }, `There are no loops for this program.\n${text.missing}`));
    $("changes").textContent = "";
    return;
  }
  const marks = new Map();
  const kind = now.side === "before" ? "gone" : "come";
  for (const [begin, end] of changes[kind] || []) {
    for (let index = begin; index < end; index += 1) marks.set(index, kind);
  }
  pane.replaceChildren(lineList(strings(text.lines), strings(text.places), tiles ? "tiles" : now.form, { marks, taken: new Set(site()) }));
  $("changes").textContent = now.at === 0 ? "" : marks.size ? `${marks.size} ${marks.size === 1 ? "line" : "lines"} ${kind === "come" ? "new" : "to go"}` : "no line changes";
  pane.scrollTop = 0;
  reveal(pane.querySelector(`.${kind}`), pane);
  link(now.selected);
}

// ---- the steps: list, curve ----------------------------------------------------------------

const isSnapshot = (at) => data.snapshots.includes(at);
const nameOf = (at) => (at === 0 ? "start" : at > last ? data.moves.steps[at - last - 1].move : data.steps[at - 1].rule);

/** Steps of one rule at one place that follow one another are one row until one of them is shown. */
function stepGroups() {
  const groups = [];
  data.steps.forEach(({ rule, level, born, beside }, index) => {
    const at = index + 1, open = groups[groups.length - 1];
    const same = open && !born && !open.born && open.rule === rule && open.level === level && open.beside === beside && !isSnapshot(at - 1);
    if (same) open.steps.push(at); else groups.push({ rule, level, born, beside, steps: [at] });
  });
  return groups;
}

function stepButton(at, number, name, level, { kind = null, title = "", born = "" } = {}) {
  return h("button", { type: "button", class: kind, onclick: () => go(at), title, "data-at": kind === "group" ? null : at },
    h("span", { class: "number" }, number), h("span", { class: "name" }, name), h("span", { class: "level" }, level),
    born ? h("span", { class: "born" }, born) : null);
}

function cutAfter(at) {
  if (!isSnapshot(at)) return [];
  const runs = data.chosen.kernels && data.chosen.state === at ? ": this one runs" : "";
  return [h("li", { class: "cut" }, `snapshot ${data.snapshots.indexOf(at) + 1} of ${data.snapshots.length}${runs}`)];
}

function buildSteps() {
  const list = [h("li", {}, stepButton(0, "0", "start", "", { title: "the unfused program" })), ...cutAfter(0)];
  let beside = false;
  for (const { rule, level, born, steps, beside: apart } of stepGroups()) {
    const [first] = steps, final = steps[steps.length - 1];
    if ((apart || rule === "safe") && !beside) {
      beside = true;
      list.push(h("li", { class: "cut" }, data.chosen.name ? `what runs: ${data.chosen.name}` : "numerically safe"));
    }
    if (steps.length > 1) list.push(h("li", { "data-group": steps.join(" ") }, stepButton(first, `${first}–${final}`, `${rule} × ${steps.length}`, level, { kind: "group", title: `${steps.length} steps of ${rule}, one by one` })));
    for (const at of steps) {
      const text = data.steps[at - 1].description;
      list.push(h("li", { "data-of": steps.length > 1 ? first : null }, stepButton(at, String(at), rule, level, { kind: born ? "matters" : null, title: born ? `${born}. ${text}` : text, born })), ...cutAfter(at));
    }
  }
  const moves = data.moves.steps.map(({ move: name, line, lead }, index) => {
    const at = last + 1 + index;
    return h("li", {}, stepButton(at, String(at), name, line.replace(name, "").trim(), { kind: "move", title: line || lead }));
  });
  if (moves.length) list.push(h("li", { class: "cut" }, `its ${data.chosen.kernels === 1 ? "kernel" : `${data.chosen.kernels} kernels`}, by moves`), ...moves);
  $("steps").replaceChildren(...list);
}

/** Opens the group of the step that is shown, and marks that step. */
function showSteps() {
  for (const group of $("steps").querySelectorAll("[data-group]")) {
    const steps = group.dataset.group.split(" ").map(Number), open = steps.includes(now.at);
    group.hidden = open;
    $("steps").querySelectorAll(`[data-of="${steps[0]}"]`).forEach((item) => { item.hidden = !open; });
  }
  $("steps").querySelectorAll("[aria-current]").forEach((button) => button.removeAttribute("aria-current"));
  $("steps").querySelector(`[data-at="${now.at}"]`).setAttribute("aria-current", "step");
}

/** What runs: the same words in the header, beside the kernel and where the steps end. */
function kernelsInWords() {
  const { name, kernels } = data.chosen, edges = data.left.length;
  if (!kernels) return `no kernel, ${edges} buffered ${edges === 1 ? "edge" : "edges"} left`;
  const count = kernels === 1 ? "one kernel" : `${kernels} kernels`;
  if (plan && !plan.missing && !plan.alone && page === 0) return `as one program: ${name}, ${count}; the plan divides it`;
  return `${name} runs, as ${count}`;
}

function drawCurve() {
  const svg = $("curve"), width = svg.clientWidth || 600, height = svg.clientHeight || 62;
  const isBytes = METRICS[now.metric][1];
  const values = Array.from({ length: end + 1 }, (_, at) => numbers(Math.min(at, last))[now.metric]);
  const usual = Math.max(values[0], values[data.chosen.state]); // beyond it the curve is cut off
  const top = Math.max(1, Math.min(Math.max(...values), 1.3 * usual)), floor = height - 6;
  const x = (at) => 8 + (end ? (at / end) * (width - 16) : 0);
  const y = (number) => floor - Math.min(number / top, 1) * (floor - 18);
  const line = values.map((number, at) => `${x(at).toFixed(1)},${y(number).toFixed(1)}`).join(" ");
  const gap = end ? (width - 16) / end : width;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren(
    s("polygon", { class: "area", points: `${x(0)},${floor} ${line} ${x(end)},${floor}` }),
    s("polyline", { class: "path", points: line }),
    s("line", { class: "now", x1: x(now.at), x2: x(now.at), y1: 14, y2: floor }),
    ...values.map((number, at) => {
      const kind = `dot${isSnapshot(at) ? " snapshot" : ""}${at > last ? " move" : ""}${at === now.at ? " current" : ""}`;
      return s("circle", { class: kind, cx: x(at), cy: y(number), r: isSnapshot(at) ? 4.5 : at === now.at ? 4 : end > 60 ? 1.5 : 2.5, "data-at": at, "data-value": number });
    }),
    ...values.map((number, at) => {
      const hit = s("rect", { class: "hit", x: Math.max(x(at) - gap / 2, 0), y: 0, width: Math.min(gap, width - Math.max(x(at) - gap / 2, 0)), height, "data-at": at }, s("title", {}, document.createTextNode(`${at} ${nameOf(at)}: ${short(number, isBytes)}`)));
      hit.addEventListener("click", () => go(at));
      return hit;
    }),
  );
  let free = -Infinity;
  for (const [index, at] of data.snapshots.entries()) {
    const middle = clamp(x(at), 30, width - 30);
    if (height < 56 || middle - free < 66 || values[at] > top) continue;
    free = middle;
    const text = s("text", { x: middle, y: Math.max(y(values[at]) - 9, 22), "text-anchor": "middle" });
    text.textContent = `snapshot ${index + 1}`;
    svg.append(text);
  }
  const place = clamp(x(now.at), 40, width - 40);
  const near = s("text", { class: "tag", x: place, y: 10, "text-anchor": "middle" });
  near.textContent = short(values[now.at], isBytes);
  svg.append(near);
  for (const [at, anchor] of [[0, "start"], [end, "end"]]) {
    if (Math.abs(x(at) - place) < 90) continue;
    const text = s("text", { x: anchor === "start" ? 2 : width - 2, y: 10, "text-anchor": anchor });
    text.textContent = short(values[at], isBytes);
    svg.append(text);
  }
  svg.setAttribute("aria-label", `${METRICS[now.metric][0]}: ${short(values[0], isBytes)} at the start, ${short(values[now.at], isBytes)} here, ${short(values[last], isBytes)} at the end`);
}
