"""The report's page: its looks, its script, and small pieces of HTML."""

import math
from html import escape

CSS = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1c2127; --muted: #5b6670; --rule: #d9dee3;
  --card: #f6f8fa; --link: #0b63a5; --warn: #8a4b00; --warn-paper: #fff6e5; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181c; --ink: #e4e8ec; --muted: #9aa5af; --rule: #333b43;
  --card: #1c2227; --link: #6db8f2; --warn: #f0c27a; --warn-paper: #2b2416; }
  .legend svg, .scatterlayer { filter: brightness(1.3); } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body { margin: 0 auto; padding: 2.5rem 1.5rem 4rem; max-width: 76rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .3rem; letter-spacing: -.01em; overflow-wrap: anywhere; }
h2 { font-size: 1.45rem; margin: 3.2rem 0 .8rem; padding-top: .9rem; border-top: 1px solid var(--rule);
  overflow-wrap: anywhere; }
h3 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
p, ul, dl { max-width: 46rem; margin: .5rem 0 .9rem; overflow-wrap: anywhere; }
sup { line-height: 0; }
a { color: var(--link); }
nav ul { padding: 0; list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; max-width: none; }
.muted, .note { color: var(--muted); font-size: .875rem; }
.warning { background: var(--warn-paper); color: var(--warn); padding: .6rem .9rem; border-radius: .4rem; }
code { font: .86em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.legend { position: sticky; top: 0; z-index: 2; background: var(--paper); padding: .5rem 0; display: flex;
  flex-wrap: wrap; gap: .3rem .4rem; }
button { font: inherit; color: inherit; cursor: pointer; }
button:focus-visible, a:focus-visible, .scroll:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
.legend button { font-size: .82rem; line-height: 1.3; text-align: left; border: 1px solid var(--rule);
  border-radius: 1rem; background: var(--card); padding: .2rem .7rem; display: inline-flex; align-items: center;
  gap: .45rem; }
.legend button[aria-pressed=false] { opacity: .45; text-decoration: line-through; }
.legend svg { flex: none; }
.plots { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(22rem, 100%), 1fr)); }
.plots figure { margin: 0; border: 1px solid var(--rule); border-radius: .5rem; padding: .6rem .5rem .2rem;
  min-width: 0; }
.plots figure:only-child { max-width: 46rem; }
.plots figcaption { display: flex; justify-content: space-between; align-items: center; gap: .5rem; font-weight: 600;
  font-size: .92rem; padding: 0 .4rem; }
.plots figcaption button { font-size: .78rem; font-weight: 400; color: var(--muted); border: 1px solid var(--rule);
  background: none; border-radius: .3rem; padding: .1rem .5rem; white-space: nowrap; }
.plot { height: 19rem; }
.scroll { overflow-x: auto; margin: .4rem 0 .8rem; }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums; }
table.sortable { min-width: 100%; }
th, td { padding: .42rem .6rem; text-align: right; vertical-align: top; border-bottom: 1px solid var(--rule);
  white-space: nowrap; }
th { vertical-align: bottom; border-bottom: 2px solid var(--rule); font-weight: 600; white-space: normal;
  line-height: 1.3; }
th.text, td.text { text-align: left; }
td.text { white-space: normal; }
td.text:first-child { min-width: 8rem; }
.sortable th:first-child, .sortable td:first-child { position: sticky; left: 0; background: var(--paper); }
td small { display: block; color: var(--muted); font-size: .78rem; }
th button { all: unset; cursor: pointer; }
th button:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
th button::after { content: "\\2195"; opacity: .35; margin-left: .3em; }
th[aria-sort=ascending] button::after { content: "\\2191"; opacity: 1; }
th[aria-sort=descending] button::after { content: "\\2193"; opacity: 1; }
tbody tr:hover, .sortable tbody tr:hover td:first-child { background: var(--card); }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.2rem; max-width: none; }
dt { color: var(--muted); } dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
@media (max-width: 40rem) { body { padding: 1.4rem 1rem 3rem; } h1 { font-size: 1.6rem; } .plot { height: 16rem; }
  .legend { position: static; } dl.facts { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .6rem; } }
@media print { .legend { position: static; } .plots figcaption button { display: none; } }
"""

SCRIPT = r"""
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
  const found = [];
  for (const line of spec.lines) {
    const common = {meta: line.learner, name: plain(line.learner), showlegend: false,
      visible: !hidden.has(line.learner)};
    const sure = line.x.map((_, i) => i).filter(i => line.low[i] !== null && line.high[i] !== null);
    const back = [...sure].reverse();
    found.push({...common, x: [...sure, ...back].map(i => line.x[i]), line: {width: 0}, mode: "lines",
      y: [...sure.map(i => to(line.high[i])), ...back.map(i => to(line.low[i]))], fill: "toself",
      fillcolor: clear(line.colour, spec.shade), hoverinfo: "skip"});
    found.push({...common, x: line.x, y: line.mean.map(to), mode: spec.marked ? "lines+markers" : "lines",
      line: {color: line.colour, dash: line.dash, width: 2}, marker: {color: line.colour, symbol: line.symbol, size: 6},
      text: line.mean.map((y, i) => `${short(y)}  [${short(line.low[i])}, ${short(line.high[i])}]`),
      hovertemplate: `${plain(line.learner)}: %{text}<extra></extra>`});
  }
  for (const each of spec.references)
    found.push({meta: each.learner, x: each.x, y: each.y.map(to), mode: "lines", showlegend: false, hoverinfo: "skip",
      visible: !hidden.has(each.learner), line: {color: each.colour, dash: "4px,5px", width: 1}});
  return found;
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
  for (const each of header.parentElement.cells) each.setAttribute("aria-sort", "none");
  header.setAttribute("aria-sort", up ? "ascending" : "descending");
  body.append(...sorted);
});
"""


def page(title: str, body: str, plots: str, plotly: str) -> str:
    """One file with everything in it. `plots` is JSON, `plotly` the library."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>{CSS}</style>\n</head>\n<body>\n{body}\n"
        f'<script type="application/json" id="plots">{plots}</script>\n<script>{plotly}</script>\n'
        f"<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def table(headers, rows, *, sortable=False, **data) -> str:
    """`headers` are (text, whether the column is text); `rows` are HTML."""
    attributes = "".join(f' data-{name}="{escape(str(value))}"' for name, value in data.items())
    cells = "".join(
        f'<th scope="col"{kind(is_text)}{" aria-sort=none" if sortable else ""}>'
        + (f'<button type="button">{text}</button>' if sortable else text)
        + "</th>"
        for text, is_text in headers
    )
    return (
        f'<div class="scroll" tabindex="0"><table{" class=sortable" if sortable else ""}{attributes}>'
        f"<thead><tr>{cells}</tr></thead>\n<tbody>\n{chr(10).join(rows)}\n</tbody></table></div>"
    )


def kind(is_text) -> str:
    return ' class="text"' if is_text else ""


def cell(column: str, text: str, value: float | None = None, *, note: str = "", **data) -> str:
    """A cell, with its numbers as they are in `data-` attributes; what is not finite is empty there."""
    data = {"value": value, **data} if value is not None or data else {}
    attributes = "".join(f' data-{name}="{exact(each)}"' for name, each in data.items())
    small = f"<small>{note}</small>" if note else ""
    return f'<td data-column="{column}"{attributes}{kind(value is None)}>{text}{small}</td>'


def exact(value) -> str:
    return repr(float(value)) if value is not None and math.isfinite(value) else ""


def number(value: float, digits: int = 4) -> str:
    """Short, for people."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:.{digits}g}".replace("e+0", "e").replace("e-0", "e-").replace("-", "−")


def plus_minus(mean: float, half: float, sign: str = " ± ") -> str:
    """The interval to two figures, and the mean to the same place."""
    if not (math.isfinite(mean) and math.isfinite(half)) or half <= 0:
        return number(mean)
    places = 1 - math.floor(math.log10(half))
    if places > 6 or max(abs(mean), half) >= 1e7:
        return f"{number(mean, 3)}{sign}{number(half, 2)}"
    digits = max(places, 0)
    return f"{mean:.{digits}f}{sign}{half:.{digits}f}".replace("-", "−")
