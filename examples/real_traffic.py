"""Sioux Falls: 360,600 trips a day on 76 roads, and how they come to an equilibrium.

Every day each traveller may choose another of the five shortest routes; at the user equilibrium nobody gains by that.
Successive averages (MSA), the classic of the field, moves a 1/t-th part of the traffic to yesterday's fastest routes.
AutoFlow begins with everybody on the shortest route, as MSA does, and has a budget for emissions, a little below those
of the equilibrium. Its steps are those that each day's own delays say.

Run it: `python examples/real_traffic.py [days]` (the data are shipped). It prints costs and emissions, and writes
out/real_traffic.png: the map with flows over capacity, and the cost of travel day by day.
"""

import sys
from pathlib import Path

import jax
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

import cocoax as cx
from cocoax.problems.real import roads

# A schematic map: places are for drawing only.
X = [0, 4, 0, 1, 2.5, 4, 5, 4, 2.5, 2.5, 1, 0, 0, 1, 2.5, 4, 4, 5, 4, 4, 2.5, 2.5, 1, 1]
Y = [7, 7, 6, 6, 6, 6, 5, 5, 5, 4, 4, 4, 0, 2, 2, 4, 3, 4, 2, 0, 0, 1, 1, 0]
COLOURS = LinearSegmentedColormap.from_list("traffic", ["#1a9850", "#e0a800", "#d73027", "#67001f"])


def draw_map(figure, axes, flows):
    """Roads as arrows beside each other, coloured by flow over capacity."""
    net = cx.data.load("sioux_falls")["links"]
    share = flows / (net["capacity"] / 1e3)
    x, y = np.array(X, float), np.array(Y, float)
    tail, head = net["tail"] - 1, net["head"] - 1
    dx, dy = x[head] - x[tail], y[head] - y[tail]
    side = 0.09 / np.hypot(dx, dy)
    arrows = axes.quiver(
        x[tail] + side * dy,
        y[tail] - side * dx,
        dx,
        dy,
        share,
        angles="xy",
        scale_units="xy",
        scale=1,
        width=0.006,
        cmap=COLOURS,
        clim=(0.3, 2.3),
    )
    axes.scatter(x, y, s=120, color="white", edgecolor="black", zorder=3)
    for node, (at_x, at_y) in enumerate(zip(x, y)):
        axes.text(at_x, at_y, str(node + 1), ha="center", va="center", fontsize=7, zorder=4)
    axes.set(title="Flow over capacity after successive averages", xticks=[], yticks=[])
    figure.colorbar(arrows, ax=axes)


def main(rounds=300, out="out"):
    instance = roads.traffic(days=rounds, routes=5)
    msa = instance.baseline("MSA")
    start = roads.successive_averages(instance.problem, instance.rounds(1))[0]
    auto = cx.play(instance.problem, cx.learners.AutoFlow(), instance.recorded, key=jax.random.key(0), start=start)
    played = {"successive averages": msa, "AutoFlow, emissions limited": auto}
    figure = Figure(figsize=(11, 5), layout="constrained")
    (left, right) = figure.subplots(1, 2)
    draw_map(figure, left, np.asarray(roads.link_flows(instance.problem, np.asarray(msa.x)[-1])))
    last = {}
    for name, each in played.items():
        cost, used = np.asarray(each.loss, float) / roads.PUBLISHED, 1 + np.asarray(each.constraint, float)[:, 0]
        tail = slice(rounds // 2, None)
        last[name] = cost[tail].mean(), used[tail].mean()
        print(f"{name:24} second half: {cost[tail].mean():.3f} of the optimum, {used[tail].mean():.1%} of the budget")
        right.plot(np.arange(1, rounds + 1), cost, label=name)
    right.axhline(1, color="black", linestyle="--", label="published optimum of an average day")
    right.set(title="Beckmann's objective, over its optimum", xlabel="day", xscale="log", yscale="log")
    right.set_yticks([1, 1.5, 2, 3, 5], ["1", "1.5", "2", "3", "5"])
    right.minorticks_off()
    right.legend(fontsize="small")
    Path(out).mkdir(parents=True, exist_ok=True)
    figure.savefig(Path(out, "real_traffic.png"), dpi=150)
    print(f"wrote {Path(out, 'real_traffic.png')}")
    return last


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
