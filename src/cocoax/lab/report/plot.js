"use strict";
// One plot as SVG. `drawPlot(box, spec, hidden, theory, proven)` fills the box; `box.cursor(i)` shows the numbers at a place.
const SVG = "http://www.w3.org/2000/svg";
const short = y => y === null ? "–" : String(Number(y.toPrecision(4))).replace("-", "−");
const MARKERS = {
  o: "M-3,0a3,3 0 1,0 6,0a3,3 0 1,0 -6,0", s: "M-3,-3H3V3H-3Z", "^": "M0,-4L3.5,3H-3.5Z", D: "M0,-4L4,0L0,4L-4,0Z",
  v: "M0,4L3.5,-3H-3.5Z", P: "M-1,-4H1V-1H4V1H1V4H-1V1H-4V-1H-1Z", X: "M-3,-4L0,-1L3,-4L4,-3L1,0L4,3L3,4L0,1L-3,4L-4,3L-1,0L-4,-3Z",
};

function element(parent, name, attributes = {}, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  parent.append(made);
  return made;
}

// An axis: `to` maps numbers to a line on which distances are shown, `ticks` are numbers on it.
function linear(values) {
  const low = Math.min(0, ...values), high = Math.max(0, ...values), span = high - low || 1;
  const rough = span / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find(factor => factor * power >= rough);
  const first = Math.floor(low / step), last = Math.ceil(high / step);
  const ticks = Array.from({length: last - first + 1}, (_, i) => Number(((first + i) * step).toPrecision(12)));
  return {kind: "linear", to: y => y, ticks, ends: [ticks[0], ticks.at(-1)]};
}

function logarithmic(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)], decades = Math.log10(high / low);
  const every = Math.max(1, Math.ceil(decades / 6)), to = Math.log10, margin = 0.04 * (to(high) - to(low) || 1);
  const inside = factors => {
    const ticks = [];
    for (let k = Math.floor(to(low)); k <= Math.ceil(to(high)); k++)
      if (k % every === 0) ticks.push(...factors.map(factor => Number((factor * 10 ** k).toPrecision(12))));
    return ticks.filter(tick => tick >= low * 0.999 && tick <= high * 1.001);
  };
  const few = [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 6, 8]].map(inside).find(ticks => ticks.length > 2);
  return {kind: "log", to, ticks: few ?? [low, high].map(y => Number(y.toPrecision(3))),
    ends: [to(low) - margin, to(high) + margin]};
}

function bothSides(values) {  // linear around zero, logarithmic beyond
  const largest = values.reduce((most, y) => Math.max(most, Math.abs(y)), 0);
  const unit = 10 ** (Math.floor(Math.log10(largest)) - 2);
  const to = y => Math.sign(y) * Math.log10(1 + Math.abs(y) / unit);
  const low = Math.min(0, ...values), high = Math.max(0, ...values), margin = 0.04 * (to(high) - to(low));
  const tens = [1, 2, 3].map(k => Number((unit * 10 ** k).toPrecision(3)));
  const ticks = [...tens.map(y => -y).reverse(), 0, ...tens].filter(y => y >= 1.5 * low && y <= 1.5 * high);
  const ends = [Math.min(to(low), to(ticks[0])) - margin, Math.max(to(high), to(ticks.at(-1))) + margin];
  return {kind: "symlog", unit, to, ticks, ends};
}

function axisOf(scale, values) {
  if (!values.length || values.every(y => y === 0) || scale === "linear") return linear(values);
  return values.every(y => y > 0) ? logarithmic(values) : bothSides(values);
}

function drawPlot(box, spec, hidden, theory, proven) {
  const lines = spec.lines.filter(line => !hidden.has(line.learner));
  const references = theory ? spec.references.filter(line => !hidden.has(line.learner)) : [];
  const values = [...lines.flatMap(line => [...line.mean, ...line.low, ...line.high, ...(proven && line.bound || [])]),
    ...references.flatMap(line => line.y)].filter(y => y !== null);
  const yAxis = axisOf(spec.scale, values);
  const places = [...new Set(lines.flatMap(line => line.x))].sort((a, b) => a - b);
  const xTo = spec.ticks ? Math.log : x => x;
  const xTicks = spec.ticks ?? linear(places).ticks.filter(x => x <= Math.max(...places));
  const xEnds = places.length ? [xTo(spec.ticks ? places[0] : 0), xTo(places.at(-1))] : [0, 1];

  const width = Math.max(box.clientWidth, 200), height = box.clientHeight || 280;
  const left = 14 + 7 * Math.max(...yAxis.ticks.map(y => short(y).length)), right = references.length ? 46 : 14;
  const [top, bottom] = [10, 42];
  const X = x => left + (width - left - right) * (xTo(x) - xEnds[0]) / (xEnds[1] - xEnds[0] || 1);
  const Y = y => top + (height - top - bottom) * (yAxis.ends[1] - yAxis.to(y)) / (yAxis.ends[1] - yAxis.ends[0] || 1);
  const path = (xs, ys) => xs.map((x, i) => [x, ys[i]]).filter(([, y]) => y !== null)
    .map(([x, y]) => `${X(x).toFixed(2)},${Y(y).toFixed(2)}`).join(" ");

  box.replaceChildren();
  const svg = element(box, "svg", {width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": described(spec, lines), "data-kind": yAxis.kind, "data-unit": yAxis.unit ?? ""});
  for (const tick of yAxis.ticks) {
    element(svg, "line", {class: tick === 0 ? "grid zero" : "grid", x1: left, x2: width - right, y1: Y(tick), y2: Y(tick)});
    element(svg, "text", {class: "tick y", x: left - 7, y: Y(tick) + 4, "data-at": Y(tick), "data-value": tick,
      "text-anchor": "end"}, short(tick));
  }
  for (const tick of xTicks)
    element(svg, "text", {class: "tick x", x: X(tick), y: height - bottom + 18, "data-at": X(tick), "data-value": tick,
      "text-anchor": "middle"}, short(tick));
  element(svg, "text", {class: "label", x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle"}, spec.xlabel);
  const bands = element(svg, "g", {class: "bands"}), means = element(svg, "g", {class: "means"});
  for (const line of lines) {
    const sure = line.x.map((_, i) => i).filter(i => line.low[i] !== null && line.high[i] !== null);
    const back = [...sure].reverse(), round = [...sure, ...back].map(i => line.x[i]);
    const edge = [...sure.map(i => line.high[i]), ...back.map(i => line.low[i])];
    element(bands, "polygon", {points: path(round, edge), fill: line.colour, "fill-opacity": spec.shade,
      "data-learner": line.learner});
    element(means, "polyline", {points: path(line.x, line.mean), stroke: line.colour, fill: "none", "stroke-width": spec.best.includes(line.learner) ? 3.6 : 1.8,
      "stroke-dasharray": line.dash, "stroke-linejoin": "round", "data-learner": line.learner});
    if (spec.marked) line.x.forEach((x, i) => line.mean[i] !== null && element(means, "path",
      {d: MARKERS[line.marker], fill: line.colour, transform: `translate(${X(x).toFixed(2)},${Y(line.mean[i]).toFixed(2)})`}));
  }
  const bounds = element(svg, "g", {class: "bounds"});
  for (const [place, line] of lines.filter(line => proven && line.bound).entries()) {
    const hatch = element(bounds, "pattern", {id: `${box.id}-hatch-${place}`, width: 7, height: 7,
      patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)"});
    element(hatch, "line", {x1: 0, x2: 0, y1: 0, y2: 7, stroke: line.colour, "stroke-width": 1.6, "stroke-opacity": 0.45});
    const sure = line.x.map((_, i) => i).filter(i => line.mean[i] !== null && line.bound[i] !== null);
    const back = [...sure].reverse(), edge = [...sure.map(i => line.bound[i]), ...back.map(i => line.mean[i])];
    element(bounds, "polygon", {points: path([...sure, ...back].map(i => line.x[i]), edge), fill: `url(#${box.id}-hatch-${place})`,
      "data-learner": line.learner});
    element(bounds, "polyline", {points: path(line.x, line.bound), stroke: line.colour, fill: "none", "stroke-width": 0.8,
      "data-learner": line.learner});
  }
  const rates = element(svg, "g", {class: "rates"}), ends = [];
  for (const line of references) {
    element(rates, "polyline", {points: path(line.x, line.y), stroke: line.colour, fill: "none", "stroke-width": 1.2,
      "stroke-dasharray": "1 4", "stroke-linecap": "round", "data-learner": line.learner});
    ends.push({...line, at: Y(line.y.at(-1)) + 4});
  }
  ends.sort((a, b) => a.at - b.at);
  ends.forEach((end, i) => { if (i) end.at = Math.max(end.at, ends[i - 1].at + 11); });  // labels do not overlap
  for (const end of ends)
    element(rates, "text", {x: width - right + 4, y: end.at, fill: end.colour}, end.label).append(title(end));

  const rule = element(svg, "line", {class: "cursor", y1: top, y2: height - bottom, visibility: "hidden"});
  const tip = document.createElement("div");
  tip.className = "tip"; tip.hidden = true;
  box.append(tip);
  box.places = places;
  box.cursor = at => {
    const x = places[at], rows = lines.map(line => ({...line, i: line.x.indexOf(x)})).filter(line => line.i >= 0);
    rows.sort((a, b) => (a.mean[a.i] ?? Infinity) - (b.mean[b.i] ?? Infinity));
    rule.setAttribute("x1", X(x)); rule.setAttribute("x2", X(x)); rule.setAttribute("visibility", "visible");
    const texts = rows.map(({learner, mean, low, high, bound, i}) =>
      `${learner}: ${short(mean[i])}` + (low[i] < high[i] ? ` (${short(low[i])} to ${short(high[i])})` : "") +
      (proven && bound && bound[i] !== null ? `, proven at most ${short(bound[i])}` : ""));
    tip.replaceChildren(...[`${spec.xlabel} = ${short(x)}`, ...texts].map((text, i) => {
      const row = document.createElement("div");
      row.textContent = text;
      if (i) row.style.setProperty("--colour", rows[i - 1].colour);
      return row;
    }));
    tip.hidden = false;
    tip.style.left = `${Math.max(0, Math.min(X(x) + 12, width - tip.offsetWidth))}px`;
    return [`${spec.label}, ${spec.xlabel} ${short(x)}`, ...texts].join("; ");
  };
  box.leave = () => { tip.hidden = true; rule.setAttribute("visibility", "hidden"); };
  svg.addEventListener("pointermove", event => {
    if (!places.length) return;
    const away = places.map(x => Math.abs(X(x) - event.offsetX));
    box.cursor(box.at = away.indexOf(Math.min(...away)));
  });
  svg.addEventListener("pointerleave", box.leave);
}

function title(line) {
  const made = document.createElementNS(SVG, "title");
  made.textContent = `the theorem's rate for ${line.learner}`;
  return made;
}

// what a reader who cannot see the plot is told
function described(spec, lines) {
  const last = lines.map(line => [line.learner, line.mean.at(-1)]).filter(([, y]) => y !== null).sort((a, b) => a[1] - b[1]);
  const ends = last.map(([learner, y]) => `${learner} ${short(y)}`).join(", ");
  return `${spec.label} by ${spec.xlabel}, ${spec.scale} scale. At the end, lowest first: ${ends}`;
}
