"""Traffic through the Abilene network, within a budget for every link.

Every hour, 132 demands are split over their four shortest paths. Shortest paths alone overload the busiest link by a
sixth of its budget; ECMP, equal parts over the paths with the fewest links, overloads it too. Auto, with nothing tuned,
keeps all budgets for a detour of a few per cent.

Run it: `python examples/real_telecom.py [hours]`, after `cocoax data fetch abilene`; without these data, the network is
a ring with chords. It prints lengths and loads, and writes out/real_telecom.png: the map, and the loads of all links.
"""

import sys
from pathlib import Path

import jax
import numpy as np
from matplotlib.figure import Figure

import cocoax as cx


def ring(nodes=8):
    """A ring with two chords, and demands between all nodes, most of them with the first."""
    around = np.arange(nodes)
    source, target = np.r_[around, 0, 1], np.r_[(around + 1) % nodes, nodes // 2, nodes // 2 + 1]
    pairs = np.array([(i, j) for i in around for j in around if i != j])
    angle = 2 * np.pi * around / nodes
    return {
        "nodes": {"name": around.astype(str), "longitude": np.cos(angle), "latitude": np.sin(angle)},
        "links": {"source": source, "target": target, "length": np.r_[np.ones(nodes), 1.5, 1.5]},
        "demands": {
            "source": pairs[:, 0],
            "target": pairs[:, 1],
            "amount": np.where((pairs == 0).any(1), 5.0, 1.0),
        },
    }


def draw_map(axes, tables, loads, title):
    """Links as lines, as red and as thick as they are loaded, in the busier direction."""
    nodes, links = tables["nodes"], tables["links"]
    busier = np.maximum(*loads.reshape(2, -1))
    for tail, head, load in zip(links["source"], links["target"], busier):
        ends = [tail, head]
        colour = "crimson" if load > 1.03 else "darkorange" if load > 0.9 else "steelblue"
        axes.plot(nodes["longitude"][ends], nodes["latitude"][ends], color=colour, linewidth=1 + 4 * load)
    axes.scatter(nodes["longitude"], nodes["latitude"], color="black", zorder=3, s=12)
    for name, x, y in zip(nodes["name"], nodes["longitude"], nodes["latitude"]):
        axes.annotate(str(name), (x, y), textcoords="offset points", xytext=(3, 4), fontsize=6)
    axes.set(title=title, xticks=[], yticks=[])
    axes.margins(0.12)


def main(rounds=2000, out="out"):
    is_real = cx.data.is_here("abilene")
    if not is_real:
        print("the data are not here (cocoax data fetch abilene): the network is a ring with chords")
    tables = cx.data.load("abilene") if is_real else ring()
    instance = cx.problems.real.telecom(data="abilene" if is_real else tables, hours=rounds)
    game = cx.play(instance.problem, cx.learners.Auto(), instance.recorded, key=jax.random.key(0))
    best = cx.hindsight(instance.problem, instance.recorded, tol=1e-3, progress=False)
    played = {"Auto": game, "best fixed, afterwards": best}
    played |= {name: instance.baseline(name) for name in ("shortest path", "ECMP")}
    loads = {}
    for name, each in played.items():
        loads[name] = 1 + np.asarray(each.constraint, float).mean(0)
        length = np.asarray(each.loss, float).mean()
        print(f"{name:24} length {length:.3f} of the shortest, busiest link {loads[name].max():.1%} of its budget")
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    draw_map(left, tables, loads["shortest path"], "Shortest paths: red is over the budget")
    draw_map(middle, tables, loads["Auto"], "Auto: none is over it")
    for name, load in loads.items():
        right.plot(100 * np.sort(load)[::-1], label=name)
    right.axhline(100, color="black", linestyle="--", linewidth=1, label="the budget")
    right.set(title="Mean load of links, sorted", xlabel="link", ylabel="per cent of the budget")
    right.legend(fontsize="small")
    Path(out).mkdir(parents=True, exist_ok=True)
    figure.savefig(Path(out, "real_telecom.png"), dpi=150)
    print(f"wrote {Path(out, 'real_telecom.png')}")
    return loads


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
