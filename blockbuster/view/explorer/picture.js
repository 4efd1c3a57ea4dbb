// Places: a node, wherever it is shown. The picture, and the map that is looked into.

// ---- places: a node, wherever it is shown --------------------------------------------------

/** The block program that is shown; moves of its kernel leave it as it is. */
const shown = () => (now.side === "before" && step() ? step().from : Math.min(now.at, last));
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

const album = () => data.pictures.states[shown()];

/** Where the step takes place, drawn alone: [picture, places], or nothing where the whole shows it. */
function place() {
  if (now.side === "before") return album().taken[now.at];
  return (now.at <= last && album().made) || album().taken[now.at + 1];
}

const boxOf = (text) => /viewBox="([^"]*)"/.exec(text)[1].split(/[ ,]+/).map(Number);

/** The picture to show: [number, places of its nodes at the top or null, what it is]. */
function choose(texts) {
  const { whole, tall, maps } = album(), most = whole.length - 1;
  if (now.focus) return [...maps[now.focus], now.focus];
  if (now.depth === PLACE && place()) return [...place(), PLACE];
  if (now.depth !== AUTO && now.depth !== PLACE && most >= 0) return [whole[Math.min(now.depth, most)], null, Math.min(now.depth, most)];
  if (now.at === 0) { // the start is the whole program, from top to bottom where that is larger
    const [across, down] = [whole[0], tall].map((number) => scaleOf(boxOf(texts[number])));
    if (across < LEAST && down > across) return [tall, null, 0];
  }
  const inside = site().length ? Math.min(...site().map((at) => at.split("-").length)) : 0;
  const fits = whole.map((_, depth) => depth).filter((depth) => scaleOf(boxOf(texts[whole[depth]])) >= LEAST).pop();
  if (fits !== undefined && fits >= Math.min(inside, most)) return [whole[fits], null, fits];
  const least = [whole[Math.max(fits ?? 0, 0)], null, fits ?? 0];
  if (!place() || now.at === 0) return least;
  const overview = isSmall() && whole.length && scaleOf(boxOf(texts[whole[0]])) > scaleOf(boxOf(texts[place()[0]]));
  return overview ? least : [...place(), PLACE];
}

function showPicture() {
  const canvas = $("canvas");
  showCrumbs();
  if (data.pictures.missing) {
    for (const id of ["depth", "smaller", "enlarge"]) $(id).closest("label, .choice, button#enlarge").hidden = true;
    canvas.replaceChildren(h("p", {}, data.pictures.missing));
    return;
  }
  const texts = data.pictures.svgs;
  const [number, tops, what] = choose(texts);
  showDepths(what);
  const text = texts[number], { maps } = album();
  const svg = document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
  const names = lineNames();
  for (const element of svg.querySelectorAll("[data-place]")) {
    const [top, ...rest] = element.dataset.place.split("-");
    const place = [tops ? tops[top] : top, ...rest].join("-");
    element.setAttribute("data-place", place);
    if (place in maps && place !== now.focus) {
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
  textsOnTop(svg);
  canvas.replaceChildren(svg);
  scale();
  reveal(svg.querySelector(".taken"), canvas);
  link(now.selected);
}

/** Depths that there are; without a choice of the reader's the page names the one it takes. */
function showDepths(what) {
  const { whole, complete } = album(), most = whole.length - 1;
  const options = whole.map((_, depth) => h("option", { value: depth }, depth === most && complete ? "all" : String(depth)));
  if (place()) options.unshift(h("option", { value: PLACE }, "the step"));
  options.unshift(h("option", { value: AUTO }, `fitting${now.focus ? "" : what === PLACE ? " (the step)" : ` (${what})`}`));
  $("depth").replaceChildren(...options);
  const chosen = String(now.depth === AUTO || now.depth === PLACE ? now.depth : Math.min(now.depth, most));
  $("depth").value = options.some((option) => option.value === chosen) ? chosen : AUTO;
  $("depth").disabled = now.focus !== "" || options.length < 3;
}

const LEAST = 1; // below it labels have less than eleven pixels
const isSmall = () => innerWidth < 600;

/** The scale at which a picture with this box fits into the pane; on a phone its width alone counts. */
function scaleOf([, , width, height]) {
  const across = ($("canvas").clientWidth - 18) / width;
  return isSmall() ? across : Math.min(across, Math.max($("canvas").clientHeight - 16, 120) / height);
}

/** A picture fits its pane until somebody zooms. */
function scale() { if (now.zoom === null) fitInto($("canvas")); }

function zoom(factor, at) {
  now.zoom = factor || null;
  if (factor) zoomBy($("canvas"), factor, at); else scale();
}

/** The next line of the program that holds the searched text, and its node. */
function search(by) {
  const wanted = $("search").value.trim().toLowerCase();
  const text = data.states[shown()].text, lines = strings(text.lines), places = strings(text.places);
  const found = wanted ? [...new Set(places.filter((at, index) => at && lines[index].toLowerCase().includes(wanted)))] : [];
  const next = (found.indexOf(now.selected) + by + found.length) % found.length;
  $("search").classList.toggle("none", Boolean(wanted) && !found.length);
  $("search").title = wanted ? `${found.length} found; Enter goes to the next` : "Search by name (/)";
  now.selected = "";
  if (found.length) select(found[Math.max(next, 0)]); else link("");
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
  if (place && !(place in album().maps)) return;
  now.focus = place;
  now.zoom = null;
  showPicture();
}
