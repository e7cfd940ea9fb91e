// Formulas: Markdown writes \( \) and \[ \] into elements of the class arithmatex, and KaTeX draws them.
function drawFormulas() {
  for (const element of document.querySelectorAll(".arithmatex:not([data-drawn])")) {
    const text = element.textContent.trim();
    element.dataset.drawn = "";
    katex.render(text.slice(2, -2), element, { displayMode: text.startsWith("\\["), throwOnError: false });
  }
}
if (window.document$) document$.subscribe(drawFormulas);
else addEventListener("DOMContentLoaded", drawFormulas);
