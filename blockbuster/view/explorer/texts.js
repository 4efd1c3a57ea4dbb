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
  $("form").hidden = tiles;
  if (text.missing) {
    pane.replaceChildren(h("p", { class: "message" }, `There are no loops for this program.\n${text.missing}`));
    $("changes").textContent = "";
    return;
  }
  const marks = new Map();
  const kind = now.side === "before" ? "gone" : "come";
  for (const [begin, end] of (now.at > 0 && text[kind]) || []) {
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

function buildSteps() {
  $("steps").replaceChildren(...data.states.flatMap((_, at) => {
    const button = h("button", { type: "button", onclick: () => go(at), title: at ? data.steps[at - 1].description : "the unfused program" },
      h("span", { class: "number" }, String(at)), h("span", { class: "name" }, nameOf(at)),
      h("span", { class: "level" }, at ? data.steps[at - 1].level : ""));
    const item = h("li", {}, button);
    return isSnapshot(at) ? [item, h("li", { class: "cut" }, `snapshot ${data.snapshots.indexOf(at) + 1} of ${data.snapshots.length}`)] : [item];
  }));
  const moves = data.moves.steps.map(({ move: name, line, lead }, index) => {
    const at = last + 1 + index;
    const button = h("button", { type: "button", class: "move", onclick: () => go(at), title: line || lead },
      h("span", { class: "number" }, String(at)), h("span", { class: "name" }, name),
      h("span", { class: "level" }, line.replace(name, "").trim()));
    return h("li", {}, button);
  });
  if (moves.length) $("steps").append(h("li", { class: "cut" }, "moves of its kernel"), ...moves);
}

function drawCurve() {
  const svg = $("curve"), width = svg.clientWidth || 600, height = svg.clientHeight || 62;
  const isBytes = METRICS[now.metric][1];
  const values = Array.from({ length: end + 1 }, (_, at) => numbers(Math.min(at, last))[now.metric]);
  const top = Math.max(...values, 1), floor = height - 6;
  const x = (at) => 8 + (end ? (at / end) * (width - 16) : 0);
  const y = (number) => floor - (number / top) * (floor - 18);
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
    if (height < 56 || middle - free < 66) continue;
    free = middle;
    const text = s("text", { x: middle, y: floor - 4, "text-anchor": "middle" });
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
