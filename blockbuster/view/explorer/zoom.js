// Pictures in a pane: they fit it, and the wheel and dragging zoom and move them.

const LARGEST = 1.4; // times its natural size, that a picture is shown at by itself

/** Labels are painted after all arrows, so that none is hidden under one. */
function textsOnTop(svg) {
  const graph = svg.querySelector("g.graph") || svg;
  graph.append(...graph.querySelectorAll(":scope > g.node"), ...graph.querySelectorAll(":scope > g.edge > text"));
}

function sized(svg, by) {
  svg.setAttribute("width", svg.viewBox.baseVal.width * by);
  svg.setAttribute("height", svg.viewBox.baseVal.height * by);
}

/** As large as the pane has room for, and no larger than is easy to read. */
function fitInto(pane) {
  const svg = pane.querySelector("svg");
  if (!svg || !pane.clientWidth) return;
  const { width, height } = svg.viewBox.baseVal;
  const grows = innerWidth < 1100; // panes under each other are as high as what they hold, up to a part of the window
  const room = grows ? innerHeight * 0.58 : pane.clientHeight;
  sized(svg, Math.min((pane.clientWidth - 18) / width, Math.max(room - 16, 60) / height, LARGEST));
}

/** Zoom about a point of the window, by default the middle of the pane. */
function zoomBy(pane, factor, at) {
  const svg = pane.querySelector("svg");
  if (!svg) return;
  const frame = pane.getBoundingClientRect(), before = svg.getBoundingClientRect();
  const [x, y] = at || [frame.left + frame.width / 2, frame.top + frame.height / 2];
  const across = (x - before.left) / before.width, down = (y - before.top) / before.height;
  sized(svg, clamp((before.width / svg.viewBox.baseVal.width) * factor, 0.05, 8));
  const after = svg.getBoundingClientRect();
  pane.scrollLeft += after.left + across * after.width - x;
  pane.scrollTop += after.top + down * after.height - y;
}

/** The wheel zooms, dragging moves; a drag is no click. */
function zooming(pane, zoom) {
  pane.addEventListener("wheel", (event) => {
    if (!pane.querySelector("svg")) return;
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / (event.deltaMode ? 20 : 600)), [event.clientX, event.clientY]);
  }, { passive: false });
  let from = null, moved = false;
  pane.addEventListener("pointerdown", (event) => {
    moved = false;
    if (event.button === 0 && event.pointerType === "mouse") from = [event.clientX, event.clientY, pane.scrollLeft, pane.scrollTop];
  });
  window.addEventListener("pointermove", (event) => {
    if (!from) return;
    const [x, y, left, top] = from;
    if (Math.hypot(event.clientX - x, event.clientY - y) > 4) moved = true;
    pane.classList.toggle("dragged", moved);
    if (moved) [pane.scrollLeft, pane.scrollTop] = [left + x - event.clientX, top + y - event.clientY];
  });
  window.addEventListener("pointerup", () => { from = null; pane.classList.remove("dragged"); });
  pane.addEventListener("click", (event) => { if (moved) event.stopImmediatePropagation(); moved = false; }, true);
}
