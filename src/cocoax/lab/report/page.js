"use strict";
const plots = JSON.parse(document.getElementById("plots").textContent);
const tone = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const short = y => y === null ? "" : String(Number(y.toPrecision(4)));
const clear = (colour, alpha) =>
  `rgba(${[1, 3, 5].map(i => parseInt(colour.slice(i, i + 2), 16)).join(",")},${alpha})`;
const plain = text => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

// the y axis: linear; logarithmic; or, where something is not positive, linear around zero and logarithmic beyond
function scaleOf(spec) {
  const values = spec.lines.flatMap(line => [...line.mean, ...line.low, ...line.high]).filter(y => y !== null);
  const largest = values.reduce((most, y) => Math.max(most, Math.abs(y)), 0);
  if (spec.scale === "linear" || largest === 0) return {to: y => y, axis: {type: "linear"}};
  if (values.every(y => y > 0)) return {to: y => y, axis: {type: "log", tickformat: "~g",
    dtick: largest > 30 * Math.min(...values) ? 1 : "D2"}};
  const unit = 10 ** (Math.floor(Math.log10(largest)) - 2);
  const to = y => y === null ? null : Math.sign(y) * Math.log10(1 + Math.abs(y) / unit);
  const tens = [1, 2, 3].map(k => unit * 10 ** k).filter(y => y <= largest * 1.5);
  const ticks = [...tens.map(y => -y).reverse(), 0, ...tens];
  return {to, axis: {type: "linear", tickvals: ticks.map(to), ticktext: ticks.map(short)}};
}

function traces(spec, to, hidden) {
  const lines = [];
  for (const line of spec.lines) {
    const common = {meta: line.learner, name: plain(line.learner), showlegend: false,
      visible: !hidden.has(line.learner)};
    const sure = line.x.map((_, i) => i).filter(i => line.low[i] !== null && line.high[i] !== null);
    const back = [...sure].reverse();
    lines.push({...common, x: [...sure, ...back].map(i => line.x[i]), line: {width: 0}, mode: "lines",
      y: [...sure.map(i => to(line.high[i])), ...back.map(i => to(line.low[i]))], fill: "toself",
      fillcolor: clear(line.colour, spec.shade), hoverinfo: "skip"});
    lines.push({...common, x: line.x, y: line.mean.map(to), mode: spec.marked ? "lines+markers" : "lines",
      line: {color: line.colour, dash: line.dash, width: 2}, marker: {color: line.colour, symbol: line.symbol, size: 6},
      text: line.mean.map((y, i) => `${short(y)}  [${short(line.low[i])}, ${short(line.high[i])}]`),
      hovertemplate: `${plain(line.learner)}: %{text}<extra></extra>`});
  }
  for (const reference of spec.references)
    lines.push({meta: reference.learner, x: reference.x, y: reference.y.map(to), mode: "lines", showlegend: false,
      visible: !hidden.has(reference.learner), hoverinfo: "skip",
      line: {color: reference.colour, dash: "4px,5px", width: 1}});
  return lines;
}

function draw(box) {
  const spec = plots[box.id], {to, axis} = scaleOf(spec);
  const hidden = new Set([...box.closest("section").querySelectorAll(".legend button[aria-pressed=false]")]
    .map(button => button.dataset.learner));
  const line = {gridcolor: tone("--rule"), zerolinecolor: tone("--muted"), zerolinewidth: 1, automargin: true,
    exponentformat: "power",
    linecolor: tone("--rule")};
  const xaxis = {...line, title: {text: spec.xlabel, standoff: 8}, zeroline: false};
  if (spec.ticks) Object.assign(xaxis, {type: "log", tickvals: spec.ticks, ticktext: spec.ticks.map(String)});
  const layout = {margin: {l: 48, r: 12, t: 8, b: 40}, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: {family: "system-ui, sans-serif", size: 12, color: tone("--ink")}, hovermode: "closest", xaxis,
    yaxis: {...line, ...axis}, hoverlabel: {align: "left"}};
  Plotly.react(box, traces(spec, to, hidden), layout, {responsive: true, displaylogo: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"]});
  const other = spec.scale === "linear" ? "log" : "linear";
  box.parentElement.querySelector("button").textContent = `${other} scale`;
}

const boxes = [...document.querySelectorAll(".plot")];
boxes.forEach(draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => boxes.forEach(draw));
for (const box of boxes) box.parentElement.querySelector("button").addEventListener("click", () => {
  plots[box.id].scale = plots[box.id].scale === "linear" ? "log" : "linear";
  draw(box);
});
for (const button of document.querySelectorAll(".legend button")) button.addEventListener("click", () => {
  button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
  button.closest("section").querySelectorAll(".plot").forEach(draw);
});

// tables: a click on a header sorts by it, a second one the other way; what has no number stays last
const numberOf = cell => cell.dataset.value === "" ? NaN : Number(cell.dataset.value);
for (const header of document.querySelectorAll("table.sortable th")) header.addEventListener("click", () => {
  const up = header.getAttribute("aria-sort") !== "ascending", column = header.cellIndex;
  const body = header.closest("table").tBodies[0];
  const sorted = [...body.rows].sort((a, b) => {
    const one = a.cells[column], two = b.cells[column];
    if (header.classList.contains("text"))
      return (up ? 1 : -1) * one.textContent.localeCompare(two.textContent, undefined, {numeric: true});
    const [first, second] = [numberOf(one), numberOf(two)];
    if (isNaN(first) || isNaN(second)) return isNaN(first) - isNaN(second);
    return (up ? 1 : -1) * (first - second);
  });
  for (const cell of header.parentElement.cells) cell.setAttribute("aria-sort", "none");
  header.setAttribute("aria-sort", up ? "ascending" : "descending");
  body.append(...sorted);
});
