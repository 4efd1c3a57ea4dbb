// The data, how elements are made, and closed forms at the sizes and blocks of the moment.

async function unpacked(id) {
  const packed = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text());
}

/** An address ends in #step, or in #derivation/step where a plan has several derivations. */
function addressed() {
  const [, page, at] = /^#(?:(\d+)\/)?(\d+)$/.exec(location.hash) || [];
  return { page: page && document.getElementById(`data-${page}`) ? Number(page) : 0, at: at && Number(at) };
}

const { page } = addressed(); // another derivation is another load of the page
const data = await unpacked(page ? `data-${page}` : "data");
const plan = document.getElementById("plan") ? await unpacked("plan") : null;
const last = data.states.length - 1; // the last state of the block program
const end = last + data.moves.steps.length; // behind it stand the moves of its kernel
const $ = (id) => document.getElementById(id);
const AUTO = "auto", PLACE = "place"; // the depth of the picture is chosen by the page; the place of the step alone
const now = {
  at: 0, side: "after", form: "text", depth: AUTO, focus: "", zoom: null,
  selected: "", tab: "step", metric: "bytes", dtype: data.dtype, timer: null,
};

// Everything from the program enters the page as text, never as markup.
function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

function s(tag, props, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(props)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const strings = (numbers) => numbers.map((number) => data.strings[number]);
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

// ---- numbers: closed forms at the sizes and blocks of the moment --------------------------

const dims = data.dims;
const sizes = {}, blocks = {};
let symbols = [], known = new Map();

function resetSizes() {
  for (const dim of dims) { sizes[dim.name] = dim.size; blocks[dim.name] = dim.blocks; }
}

const length = (rule, found) => rule.terms.reduce(
  (sum, [times, factors]) => sum + factors.reduce((product, factor) => product * number(factor, found), times), 0,
) / under(rule, found);
const under = (rule, found) => (typeof rule.divisor === "number" ? rule.divisor : length(rule.divisor, found));

/** A factor of a length: a size, or a length that is rounded up and at least 0. */
const number = (factor, found) => (typeof factor === "string" ? found[factor] : Math.max(Math.ceil(length(factor, found)), 0));
const named = (factor) => (typeof factor === "string" ? [factor] : typeof factor === "number" ? [] : [...factor.terms.flatMap(([, inner]) => inner.flatMap(named)), ...named(factor.divisor)]);

/** Make a quotient of sizes whole: what it divides becomes a multiple, or its divisor smaller. */
function divide(rule, free) {
  const own = free.filter((dim) => named(rule.divisor).includes(dim.name));
  for (const dim of own) sizes[dim.name] = Math.max(sizes[dim.name], 1);
  for (const dim of free.filter((dim) => named(rule).includes(dim.name) && !own.includes(dim))) {
    const step = dim.step * under(rule, sizes);
    sizes[dim.name] = Math.ceil(sizes[dim.name] / step) * step;
  }
  for (const dim of own) while (sizes[dim.name] > 1 && length(rule, sizes) % 1) sizes[dim.name] -= 1;
}

/** Sizes near the wanted ones that keep what slices and heads say of sizes. */
function settle() {
  const free = dims.filter((dim) => !dim.follows);
  for (const dim of free) sizes[dim.name] = Math.ceil(sizes[dim.name] / dim.step) * dim.step;
  for (const rule of data.rules_of_sizes.filter((rule) => rule.exact && typeof rule.divisor !== "number")) divide(rule, free);
  for (let turn = 0; turn < 100; turn += 1) {
    const found = new Set(free.map((dim) => dim.name));
    for (let open = data.rules_of_sizes.filter((rule) => rule.exact); open.length;) {
      const ready = open.filter((rule) => named(rule).every((n) => found.has(n)));
      if (!ready.length) break;
      for (const rule of ready) { sizes[rule.dim] = length(rule, sizes); found.add(rule.dim); }
      open = open.filter((rule) => !ready.includes(rule));
    }
    const short = data.rules_of_sizes.filter((rule) => !rule.exact && length(rule, sizes) > sizes[rule.dim]);
    const grown = free.filter((dim) => short.some((rule) => rule.dim === dim.name));
    if (!grown.length) break;
    for (const dim of grown) sizes[dim.name] += dim.step;
  }
  for (const dim of dims) {
    const size = sizes[dim.name];
    blocks[dim.name] = dim.unit ? size : Math.ceil(size / Math.ceil(size / clamp(blocks[dim.name], 1, size)));
  }
  symbols = dims.flatMap((dim) => {
    const size = sizes[dim.name], count = blocks[dim.name];
    return [size, count, Math.ceil(size / count)];
  });
  known = new Map();
}

const value = (number) => data.polynomials[number].reduce(
  (sum, [times, ...factors]) => sum + factors.reduce((product, symbol) => product * symbols[symbol], times), 0,
);

/** What state `at` moves, computes and holds. */
function numbers(at) {
  const key = at;
  if (!known.has(key)) {
    const state = data.states[at], width = data.element_bytes[now.dtype];
    const tensors = state.tensors.map((tensor) => {
      const [loads, stores, loaded, stored] = tensor.forms.map(value);
      return { loads, stores, bytes: (loaded + stored) * (data.own_bytes[tensor.own] ?? width) };
    });
    const sum = (what) => tensors.reduce((total, tensor) => total + tensor[what], 0);
    const matrix = value(state.flops.matrix), vector = value(state.flops.vector);
    known.set(key, {
      tensors, loads: sum("loads"), stores: sum("stores"), bytes: sum("bytes"), matrix, vector,
      flops: matrix + vector, edges: state.edges.length,
      footprint: Math.max(0, ...state.footprint.map(value)) * width,
    });
  }
  return known.get(key);
}

const METRICS = {
  bytes: ["bytes moved", true], loads: ["block loads", false], stores: ["block stores", false],
  edges: ["buffered edges", false], footprint: ["local footprint", true],
  matrix: ["flops, matrix", false], vector: ["flops, vector", false], flops: ["flops", false],
};

function short(number, isBytes) {
  const size = Math.abs(number);
  if (!isBytes && size < 1e5) return number.toLocaleString("en-US");
  const units = isBytes ? ["B", "kB", "MB", "GB", "TB", "PB"] : ["", "k", "M", "G", "T", "P", "E"];
  const power = clamp(Math.floor(Math.log10(Math.max(size, 1)) / 3), 0, units.length - 1);
  const scaled = number / 1000 ** power;
  const text = power === 0 ? String(scaled) : scaled.toFixed(Math.abs(scaled) < 10 ? 2 : Math.abs(scaled) < 100 ? 1 : 0);
  return units[power] ? `${text} ${units[power]}` : text;
}

function change(before, after, isBytes) {
  if (before === after) return h("span", { class: "quiet" }, "=");
  const sign = after > before ? "+" : "−", share = Math.abs(after / before - 1) * 100;
  const text = before ? `${share.toFixed(share < 10 ? 1 : 0)}%` : short(after, isBytes);
  return h("span", { class: after > before ? "more" : "less", title: `${sign}${short(Math.abs(after - before), isBytes)}` }, `${sign}${text}`);
}

const cell = (number, isBytes, props) => h("td", { "data-value": number, title: number.toLocaleString("en-US"), ...props }, short(number, isBytes));
