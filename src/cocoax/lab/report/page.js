const plots = JSON.parse(document.getElementById("plots").textContent);
const boxes = [...document.querySelectorAll(".plot")];
const live = document.getElementById("live");
const pressed = button => button.getAttribute("aria-pressed") === "true";

function draw(box) {
  const spec = plots[box.id], legend = box.closest("section").querySelector(".legend");
  const hidden = new Set([...legend.querySelectorAll("[data-learner][aria-pressed=false]")].map(one => one.dataset.learner));
  const [theory, proven] = ["theory", "proven"].map(name => legend.querySelector(`[data-${name}]`));
  drawPlot(box, spec, hidden, theory ? pressed(theory) : true, proven ? pressed(proven) : true);
  const other = spec.scale === "linear" ? "log" : "linear";
  const button = box.parentElement.querySelector("figcaption button");
  button.textContent = `${other} scale`;
  button.setAttribute("aria-label", `${spec.label}: ${other} scale`);
}

// a plot is drawn when it comes near the window, and again when its width changes
const near = new IntersectionObserver(found => {
  for (const {target, isIntersecting} of found) if (isIntersecting && !target.drawn) {
    target.drawn = true;
    draw(target);
  }
}, {rootMargin: "1200px"});
const wide = new ResizeObserver(found => {
  for (const {target} of found) if (target.drawn && target.clientWidth !== target.wide) draw(target);
  for (const {target} of found) target.wide = target.clientWidth;
});
const again = section => section.querySelectorAll(".plot").forEach(box => { if (box.drawn) draw(box); });

for (const box of boxes) {
  near.observe(box);
  wide.observe(box);
  box.parentElement.querySelector("figcaption button").addEventListener("click", () => {
    plots[box.id].scale = plots[box.id].scale === "linear" ? "log" : "linear";
    draw(box);
  });
  box.addEventListener("keydown", event => {  // arrows move over the plot's places and say the numbers there
    const step = {ArrowLeft: -1, ArrowRight: 1}[event.key], last = (box.places?.length ?? 0) - 1;
    if (!step || last < 0) return;
    event.preventDefault();
    box.at = Math.max(0, Math.min(last, (box.at ?? (step > 0 ? -1 : last + 1)) + step));
    live.textContent = box.cursor(box.at);
  });
  box.addEventListener("blur", () => box.leave?.());
}
for (const button of document.querySelectorAll(".legend [aria-pressed]")) button.addEventListener("click", () => {
  button.setAttribute("aria-pressed", String(!pressed(button)));
  again(button.closest("section"));
});
for (const more of document.querySelectorAll(".legend [aria-expanded]")) more.addEventListener("click", () => {
  const open = more.getAttribute("aria-expanded") !== "true", legend = more.closest(".legend");
  more.setAttribute("aria-expanded", String(open));
  more.textContent = open ? "Show fewer" : more.dataset.text;
  for (const button of legend.querySelectorAll(".extra")) {
    button.hidden = !open;
    button.setAttribute("aria-pressed", String(open));
  }
  again(legend.closest("section"));
});

// on paper everything is open and drawn
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details:not([open])")) { part.open = true; part.dataset.printed = ""; }
  for (const box of boxes) { box.drawn = true; draw(box); }
});
addEventListener("afterprint", () => {
  for (const part of document.querySelectorAll("details[data-printed]")) { part.open = false; delete part.dataset.printed; }
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
