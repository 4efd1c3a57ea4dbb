// The kernel on an abstract machine: processors over time, and how busy each resource is.

const LINES = 1000; // units of the charts along time

function buildSimulation() {
  const panel = $("panel-simulation"), sim = data.simulation;
  if (sim.missing) { panel.replaceChildren(h("p", { class: "message" }, sim.missing)); return; }
  const readout = h("p", { class: "quiet", id: "bar-at" }, "Point at a bar to see which program it is.");
  panel.replaceChildren(
    h("h2", {}, `${microseconds(sim.time)} on ${sim.machine} (${sim.by}, in a CUDA graph)${sim.sample.length ? ", of a sample" : ""}`),
    sim.sample.length ? h("p", { class: "lead", id: "sample" }, `A sample of the programs was simulated: ${sim.sample.map(([dim, size, of]) => `${dim} = ${size.toLocaleString("en-US")} in place of ${of.toLocaleString("en-US")}`).join(", ")}.${sim.shortened.length ? ` Its programs loop over ${sim.shortened.join(", ")}, too: each does less than in the whole.` : ""}`) : "",
    h("p", { class: "lead" }, sim.critical === "latency" ? "no resource works half of the time: one thing waits for another." : `limited by ${sim.critical}.`),
    section(sim.every > 1 ? `Every ${sim.every}th of ${sim.processors} processors over time` : `${sim.processors} processors over time`, legend(sim), timeline(sim, readout), axis(sim.time), readout),
    section("Resources, busy over the same time", h("div", { class: "busy" }, sim.resources.flatMap(busyRow))),
    section("Taken for granted", h("ul", {}, sim.assumed.map((text) => h("li", {}, text)))),
  );
}

const microseconds = (number) => `${number.toLocaleString("en-US", { maximumFractionDigits: number < 100 ? 2 : 0 })} µs`;

function kindOf(sim, name) {
  const found = sim.resources.find((resource) => resource.name === name);
  return found ? found.kind : "local";
}

function legend(sim) {
  const shown = [...Object.keys(sim.bars), ...(sim.launches.length ? ["launch"] : [])];
  return h("div", { class: "legend" }, shown.map((name) => h("span", { class: `key-${kindOf(sim, name)}` }, name)));
}

function timeline(sim, readout) {
  const rows = Math.ceil(sim.processors / sim.every), across = LINES / sim.time;
  const box = ([start, stop], row, tall) => `M${(start * across).toFixed(2)} ${row}h${((stop - start) * across).toFixed(2)}v${tall}H${(start * across).toFixed(2)}z`;
  const paths = Object.entries(sim.bars).map(([name, bars]) => s("path", {
    class: `bar-${kindOf(sim, name)}`, "data-resource": name,
    d: bars.map(([processor, start, stop]) => box([start, stop], processor / sim.every, 1)).join(""),
  }));
  const launches = s("path", { class: "bar-launch", d: sim.launches.map((ends) => box(ends, 0, rows)).join("") });
  const chart = s("svg", { id: "processors", viewBox: `0 0 ${LINES} ${rows}`, preserveAspectRatio: "none", role: "img", "aria-label": "What each processor is busy with over time" }, launches, ...paths);
  chart.addEventListener("mousemove", (event) => {
    const box = chart.getBoundingClientRect();
    const time = (event.clientX - box.left) / box.width * sim.time;
    const processor = Math.floor((event.clientY - box.top) / box.height * rows) * sim.every;
    readout.textContent = barsAt(sim, processor, time) || `processor ${processor} is idle at ${microseconds(time)}`;
  });
  return chart;
}

function barsAt(sim, processor, time) {
  const found = Object.entries(sim.bars).flatMap(([name, bars]) => bars
    .filter(([at, start, stop]) => at === processor && start <= time && time < stop)
    .map(([, start, stop, kernel, program]) => `program ${program} of kernel ${kernel + 1}, ${microseconds(start)} to ${microseconds(stop)} (${name})`));
  return found.length ? `processor ${processor}: ${found.join("; ")}` : "";
}

const axis = (time) => h("div", { class: "axis" }, [0, 0.25, 0.5, 0.75, 1].map((part) => h("span", {}, microseconds(part * time))));

function busyRow(resource) {
  const { name, kind, busy, bytes, use } = resource;
  const step = LINES / Math.max(use.length, 1);
  const area = use.length ? `M0 1${use.map((part, at) => `L${(at * step).toFixed(1)} ${(1 - part).toFixed(2)}H${((at + 1) * step).toFixed(1)}`).join("")}V1z` : "";
  return [
    h("span", { class: `key-${kind}` }, name),
    h("span", { class: "number", "data-busy": name }, `${Math.round(busy * 100)}%`),
    h("span", { class: "number quiet" }, bytes === null ? "" : short(bytes, true)),
    s("svg", { viewBox: `0 0 ${LINES} 1`, preserveAspectRatio: "none", role: "img", "aria-label": `${name} over time` }, s("path", { class: `bar-${kind}`, d: area })),
  ];
}
