"""Tables and a plot from kept results, one file a device. The plot needs matplotlib, the rest nothing."""

from pathlib import Path

TITLES = {
    "paper": "The paper's experiment",
    "reproduce": "The paper in one command",
    "rounds": "One round against dimension",
    "lmos": "Batched linear minimisation",
    "throughput": "Throughput of games",
    "first": "Time to first result",
    "memory": "Memory",
    "hindsight": "The best decision in hindsight",
    "comparators": "Comparators that are hard",
    "factored": "Too large to write down",
}
DEVICES = {"cpu": "CPU", "gpu": "GPU"}
RELATIONS = {">=": "at least", "<=": "at most"}
PIVOTED = ("rounds", "throughput", "first", "memory", "hindsight")

HEAD = """# Benchmarks

`make bench` and `python -m benchmarks --device gpu --write-docs` write this page and its figures, `benchmarks/results`.
Medians, with quartiles in brackets; all that is compared was timed in turn, in one run. Ratios are taken turn by turn:
on a shared machine they say more than times.

![Time of a round against dimension, and throughput against the number of instances](benchmarks.png)
"""


def quantity(value, unit):
    """A number that can be read: three digits, and the unit of time that suits it."""
    if unit == "s":
        for factor, name in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
            if value * factor >= 1 or name == "µs":
                return f"{value * factor:.3g} {name}"
    number = f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    return {"x": f"{number}x", "1/s": f"{number} /s"}.get(unit, f"{number} {unit}")


def with_spread(found, unit):
    """Median and quartiles, the latter where there were repeats."""
    middle = quantity(found["median"], unit)
    if found["repeats"] < 2:
        return middle
    return f"{middle} ({quantity(found['low'], unit)} to {quantity(found['high'], unit)})"


def table(head, lines):
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in (head, ["---"] * len(head), *lines))


def long_table(rows):
    """A line for each way."""
    lines = []
    for row in rows:
        is_compared = "ratio" in row and row["way"] != row["over"]
        ratio = f"{with_spread(row['ratio'], 'x')} {row['over']}" if is_compared else ""
        best = "" if row["unit"] == "x" else quantity(row["best"], row["unit"])
        lines.append((row["case"], row["way"], with_spread(row, row["unit"]), best, row["repeats"], ratio, row["note"]))
    return table(("case", "way", "median (quartiles)", "best", "repeats", "ratio", ""), lines)


def pivoted(rows):
    """A line for each case, a column for each way."""
    ways, cases = (list(dict.fromkeys(row[key] for row in rows)) for key in ("way", "case"))
    cells = {(row["case"], row["way"]): with_spread(row, row["unit"]) for row in rows}
    notes = {case: "; ".join(row["note"] for row in rows if row["case"] == case and row["note"]) for case in cases}
    named = ["", *ways, ""] if any(notes.values()) else ["", *ways]
    return table(
        named, [(case, *(cells.get((case, way), "–") for way in ways), notes[case])[: len(named)] for case in cases]
    )


def left_out(rows):
    """What was not measured, and why."""
    reasons = {}
    for row in rows:
        reasons.setdefault((row["way"], row["skipped"]), []).append(row["case"])
    return "\n".join(f"* not measured: {way} ({', '.join(cases)}): {why}" for (way, why), cases in reasons.items())


def blocks(rows):
    """Cases of one kind ("a game, T = 100") share a table, since they share their ways."""
    kinds = {}
    for row in rows:
        kinds.setdefault(row["case"].partition(",")[0] if "," in row["case"] else "", []).append(row)
    return kinds.values()


def section(name, results):
    """One section of the page, with all devices."""
    about = next(result["sections"][name]["about"] for result in results.values() if name in result["sections"])
    parts = [f"## {TITLES[name]}", about.strip()]
    for device, result in results.items():
        if name not in result["sections"]:
            continue
        found = result["sections"][name]
        rows = [row for row in found["rows"] if "skipped" not in row]
        parts.append(f"### {DEVICES[device]}: {found['machine']}\n\n{made(found)}")
        parts += [pivoted(block) for block in blocks(rows)] if name in PIVOTED else [long_table(rows)]
        parts.append(left_out([row for row in found["rows"] if "skipped" in row]))
    return "\n\n".join(part for part in parts if part)


def made(found):
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    return f"`{found['command']}`, {found['date']}, {versions}, sources {found['sources']}."


def targets(results):
    """What was promised beside what was measured."""
    lines = []
    for device, result in results.items():
        for found in result["sections"].values():
            for row in found["rows"]:
                if "target" in row:
                    goal = row["target"]
                    bound = f"{RELATIONS[goal['relation']]} {quantity(goal['bound'], row['unit'])}"
                    what = (DEVICES[device], f"{row['way']}, {row['case']}", with_spread(row, row["unit"]), bound)
                    lines.append((*what, "yes" if goal["met"] else "**no**"))
    return table(("device", "ratio", "measured", "target", "met"), lines) if lines else ""


def page(results, older=()):
    """The whole page. It says which sections were measured before the library was changed."""
    told = (
        f"Measured before the library's latest changes, and to be measured again: {', '.join(older)}." if older else ""
    )
    measured = [name for name in TITLES if any(name in result["sections"] for result in results.values())]
    parts = [HEAD.strip(), told if older else "", targets(results), *(section(name, results) for name in measured)]
    return "\n\n".join(part for part in parts if part) + "\n"


def plot(results, path: Path):
    """Rounds against dimension for each device, and throughput against instances."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    panels = [
        (device, name) for name in ("rounds", "throughput") for device in results if name in results[device]["sections"]
    ]
    if not panels:
        return False
    high, wide = -(-len(panels) // 2), min(len(panels), 2)
    figure, axes = plt.subplots(high, wide, figsize=(5.2 * wide, 4.2 * high), squeeze=False, layout="constrained")
    for axis in axes.flat[len(panels) :]:
        axis.remove()
    for axis, (device, name) in zip(axes.flat, panels):
        key, label, unit = ("size", "rows = columns", "s") if name == "rounds" else ("batch", "instances", "1/s")
        lines = {}
        for row in results[device]["sections"][name]["rows"]:
            if row.get("unit") == unit and key in row:
                lines.setdefault(row["way"], []).append((row[key], row["median"], row["low"], row["high"]))
        for way, points in lines.items():
            x, median, low, high = zip(*sorted(points))
            (line,) = axis.loglog(x, median, "--" if way == "memory floor" else "o-", markersize=3, label=way)
            axis.fill_between(x, low, high, alpha=0.2, color=line.get_color())
        axis.set(xlabel=label, ylabel="seconds a round" if name == "rounds" else "rounds of all games, per second")
        axis.set_title(f"{TITLES[name]}, {DEVICES[device]}", fontsize=10)
        axis.legend(fontsize=7)
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return True
