// Places: a node, wherever it is shown. The picture, and the map that is looked into.

// ---- places: a node, wherever it is shown --------------------------------------------------

/** The block program that is shown; moves of its kernel leave it as it is. */
const shown = () => Math.min(now.side === "before" && now.at > 0 ? now.at - 1 : now.at, last);
const step = () => (now.at > 0 && now.at <= last ? data.steps[now.at - 1] : null);
const move = () => (now.at > last ? data.moves.steps[now.at - last - 1] : null);

/** The places that the step took (in the program before) or made (in the one after). */
function site() {
  if (!step()) return [];
  return now.side === "before" ? step().roles.map(([, place]) => place) : step().made;
}

const parent = (place) => place.split("-").slice(0, -1).join("-");
const within = (place, around) => !around || place === around || place.startsWith(`${around}-`);

function link(place) {
  const elements = document.querySelectorAll(".linked");
  elements.forEach((element) => element.classList.remove("linked"));
  if (!place) return;
  for (let near = place; near; near = parent(near)) {
    const found = $("canvas").querySelectorAll(`[data-place="${near}"]`);
    found.forEach((element) => element.classList.add("linked"));
    if (found.length) break;
  }
  for (const list of [$("text"), $("panel-kernel")]) {
    if (list === $("panel-kernel") && shown() !== last) continue; // its lines name nodes of the last program
    list.querySelectorAll(`li[data-place="${place}"]`).forEach((line) => line.classList.add("linked"));
  }
}

function select(place) {
  now.selected = now.selected === place ? "" : place;
  link(now.selected);
  reveal($("text").querySelector(".linked"), $("text"));
  reveal($("canvas").querySelector(".linked"), $("canvas"));
}

function reveal(element, pane) {
  if (!element) return;
  const box = element.getBoundingClientRect(), frame = pane.getBoundingClientRect();
  if (box.top < frame.top || box.bottom > frame.bottom) pane.scrollTop += box.top - frame.top - frame.height / 3;
  if (pane === $("text")) return;
  if (box.left < frame.left || box.right > frame.right) {
    pane.scrollLeft += box.left + Math.min(box.width, frame.width) / 2 - frame.left - frame.width / 2;
  }
}

/** Hovering shows a node everywhere, clicking keeps it; `home` says whose nodes the pane names. */
function linking(pane, home = shown) {
  const at = (event) => event.target.closest("[data-place]");
  const over = (event) => { if (at(event) && shown() === home()) link(at(event).dataset.place); };
  pane.addEventListener("mouseover", over);
  pane.addEventListener("focusin", over);
  pane.addEventListener("mouseleave", () => link(now.selected));
  pane.addEventListener("click", async (event) => {
    if (!at(event)) return;
    const { place } = at(event).dataset;
    if (shown() !== home()) {
      now.side = "after";
      go(home());
    }
    select(place);
  });
}

// ---- the picture ------------------------------------------------------------------------

const unpacked = new Map();
let turn = 0;

async function unpack(number) {
  if (!unpacked.has(number)) {
    const bytes = Uint8Array.from(atob(data.pictures.svgs[number]), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    unpacked.set(number, await new Response(stream).text());
  }
  return unpacked.get(number);
}

async function showPicture() {
  const canvas = $("canvas"), mine = (turn += 1);
  showCrumbs();
  if (data.pictures.missing) {
    for (const id of ["depth", "smaller", "enlarge"]) $(id).closest("label, .choice, button#enlarge").hidden = true;
    canvas.replaceChildren(h("p", {}, data.pictures.missing));
    return;
  }
  const album = data.pictures.states[shown()];
  const most = album.whole.length - 1;
  const deepest = album.complete ? "all" : String(most);
  $("depth").replaceChildren(...album.whole.map((_, depth) => h("option", { value: depth === most ? "Infinity" : depth }, depth === most ? deepest : String(depth))));
  $("depth").value = now.depth >= most ? "Infinity" : now.depth;
  $("depth").disabled = now.focus !== "" || most === 0;
  const number = now.focus ? album.maps[now.focus] : album.whole[Math.min(now.depth, most)];
  const text = await unpack(number);
  if (mine !== turn) return;
  const svg = document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
  const names = lineNames();
  for (const element of svg.querySelectorAll("[data-place]")) {
    const place = now.focus ? now.focus + element.dataset.place.slice(1) : element.dataset.place;
    element.setAttribute("data-place", place);
    if (place in album.maps && place !== now.focus) {
      element.setAttribute("tabindex", 0);
      element.setAttribute("role", "button");
      element.setAttribute("aria-label", `Look into ${names.get(place) || place}`);
    }
  }
  for (const place of site()) {
    for (let near = place; near && within(near, now.focus); near = parent(near)) {
      const found = svg.querySelector(`[data-place="${near}"]`);
      if (found) { if (near !== now.focus) found.classList.add("taken"); break; }
    }
  }
  svg.setAttribute("role", "group");
  svg.setAttribute("aria-label", `Picture of ${now.focus ? `map ${now.focus}` : "the program"}`);
  canvas.replaceChildren(svg);
  scale();
  reveal(svg.querySelector(".taken"), canvas);
  link(now.selected);
}

function fitting() {
  const svg = $("canvas").querySelector("svg"), box = svg.viewBox.baseVal;
  return Math.min(($("canvas").clientWidth - 18) / box.width, Math.max($("canvas").clientHeight - 16, 120) / box.height);
}

function scale() {
  const svg = $("canvas").querySelector("svg");
  if (!svg) return;
  const by = now.zoom || clamp(fitting(), 0.85, 1.4);
  svg.setAttribute("width", svg.viewBox.baseVal.width * by);
  svg.setAttribute("height", svg.viewBox.baseVal.height * by);
}

function zoom(factor) {
  const svg = $("canvas").querySelector("svg");
  if (!svg) return;
  now.zoom = factor ? clamp((svg.width.baseVal.value / svg.viewBox.baseVal.width) * factor, 0.1, 6) : fitting();
  scale();
}

function showCrumbs() {
  const parts = now.focus ? now.focus.split("-") : [];
  const places = ["", ...parts.map((_, index) => parts.slice(0, index + 1).join("-"))];
  const names = lineNames();
  $("crumbs").replaceChildren(
    ...places.flatMap((place, index) => [
      index ? h("span", { class: "quiet" }, "›") : null,
      h("button", { type: "button", "aria-current": place === now.focus ? "true" : null, onclick: () => focus(place) },
        place ? names.get(place) || place : "program"),
    ]).filter(Boolean),
    h("span", { class: "hint" }, data.pictures.missing ? "" : now.focus ? "Esc goes up" : "click a map to look into it"),
  );
}

/** How the text form calls the maps of the program that is shown. */
function lineNames() {
  const text = data.states[shown()].text, lines = strings(text.lines), places = strings(text.places);
  const names = new Map();
  lines.forEach((line, index) => {
    const found = /^\s*(.*?) = map (\S+)/.exec(line);
    if (found && places[index]) names.set(places[index], `${found[1]}: ${found[2]}`);
  });
  return names;
}

function focus(place) {
  if (place && !(place in data.pictures.states[shown()].maps)) return;
  now.focus = place;
  now.zoom = null;
  showPicture();
}

/** Look where the step takes place, if the picture of the program does not go that deep. */
function follow() {
  now.focus = "";
  if (data.pictures.missing || !site().length) return;
  const album = data.pictures.states[shown()];
  const around = parent(site()[0]);
  if (around && around.split("-").length > Math.min(now.depth, album.whole.length - 1) && around in album.maps) now.focus = around;
}
