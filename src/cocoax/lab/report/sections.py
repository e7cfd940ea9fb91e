"""The parts of a report's page, as HTML."""

import re
from html import escape

from . import tables
from .data import Changes, Facts, described, one_by_one
from .page import cell, table
from .plots import against_horizon, over_rounds

HOW_TO_READ = """<p><b>Regret</b> is the total loss above that of the best fixed decision that meets the constraints,
the comparator; <b>violation</b> is the sum of a constraint's values over the rounds (of several, the worst), and at
most 0 is good. <b>Read the two together</b>: overspending buys negative regret. The <b>score</b>, regret + ⟨λ*,
[violation]₊⟩, charges what was overspent at the price λ* of the comparator's certificate, so lower is better. After ±
stand 95% confidence intervals of the mean over the seeds (Student's t); shaded bands hold the middle 80% of the seeds.
A <b>slope</b> is the p of c·T<sup>p</sup> fitted to the means, with a 95% bootstrap interval; a theorem's exponent,
drawn as a thin dashed line through the first mean, is an upper bound for large T.</p>"""


def slug(name: str) -> str:
    """For addresses and file names."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "problem"


def problem_section(name: str, address: str, facts: Facts, changes: Changes, plots: dict) -> str:
    """Everything about one problem, whose `facts` these are; adds its plots to `plots`."""
    parts = [f'<section id="{address}"><h2>{escape(name)}</h2>']
    if not len(facts.summary):
        return "".join([*parts, tables.unplayed(facts), tables.bad(facts), "</section>"])
    drawn = [learner for learner in facts.looks if learner in set(facts.summary["learner"])]
    parts.append(_legend({learner: facts.looks[learner] for learner in drawn}))
    if not facts.constrained:
        parts.append("<p>This problem has no constraint: violation is 0, and score is regret.</p>")
    if facts.summary["horizon"].n_unique() > 1:
        names = ("regret", "violation")[: 1 + facts.constrained]
        found = {x: against_horizon(facts.summary, x, facts.looks, facts.rates[x]) for x in names}
        parts.append("<h3>Against the horizon</h3>" + _plots(f"{address}-horizon", found, plots))
    names = ("regret", "violation", "multiplier")[: 1 + 2 * facts.constrained]
    found = {x: over_rounds(facts.curves, x, facts.looks) for x in names}
    parts.append(f"<h3>Over the rounds, T = {facts.horizon}</h3>" + _plots(f"{address}-round", found, plots))
    parts += [tables.final(name, facts, changes), tables.paired(name, facts), tables.certificate(name, facts)]
    parts += [tables.unplayed(facts), tables.bad(facts)]
    return "\n".join([*parts, "</section>"])


def learners_section(learners, changes: Changes) -> str:
    """What each learner is, and which of its numbers are not the defaults."""
    rows = []
    for (name, problem), learner in one_by_one(learners).items():
        other = ", ".join(f"<b>{escape(key)} = {escape(each)}</b>" for key, each in changes[name, problem].items())
        name = name if problem is None else f"{name}, {problem}"
        rows.append(
            f"<tr>{cell('learner', escape(name))}{cell('parameters', f'<code>{escape(described(learner))}</code>')}"
            f"{cell('changed', other or 'none')}</tr>"
        )
    text = (
        "<p>A learner behind which a theorem stands uses that theorem's constants, unless the last column says "
        "otherwise.</p>"
    )
    headers = [("learner", True), ("parameters", True), ("not the default", True)]
    return f'<section id="learners"><h2>Learners</h2>{text}{table(headers, rows, table="learners")}</section>'


def _legend(looks):
    def sample(look):
        dash = {"-": "", "--": "7 4", "-.": "7 3 2 3", ":": "2 3"}[look.dash]
        return (
            f'<svg width="26" height="8" aria-hidden="true"><line x1="0" y1="4" x2="26" y2="4" stroke="{look.colour}" '
            f'stroke-width="3" stroke-dasharray="{dash}"/></svg>'
        )

    buttons = [
        f'<button type="button" aria-pressed="true" data-learner="{escape(name)}">{sample(look)}{escape(name)}</button>'
        for name, look in looks.items()
    ]
    return f'<div class="legend" role="group" aria-label="learners in the plots">{"".join(buttons)}</div>'


def _plots(address, found, plots):
    figures = []
    for name, spec in found.items():
        if not any(y is not None for line in spec["lines"] for y in line["mean"]):
            continue  # no comparator, no regret
        plots[f"{address}-{name}"] = spec
        figures.append(
            f'<figure><figcaption>{escape(spec["label"].capitalize())}<button type="button">scale</button></figcaption>'
            f'<div class="plot" id="{address}-{name}"></div></figure>'
        )
    return f'<div class="plots">{"".join(figures)}</div>'
