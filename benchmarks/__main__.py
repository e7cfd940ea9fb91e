"""All speeds, as ratios in one run: writes a Markdown table, a plot, and the figures as JSON.

python -m benchmarks [--device cpu|gpu] [--quick] [--only rounds,lmos] [--out FOLDER] [--write-docs]
python -m benchmarks --render

`--write-docs` also keeps the figures in `benchmarks/results` (of this device, and of the sections that were measured)
and writes docs/benchmarks.md and its plot from all that is kept; `--render` does only that. BLAS has one thread unless
OPENBLAS_NUM_THREADS says otherwise.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads wait for each other where cores are shared

import argparse
import datetime
import importlib
import json
import platform
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks import render

ROOT = Path(__file__).parent.parent
KEPT, PAGE = ROOT / "benchmarks" / "results", ROOT / "docs" / "benchmarks.md"
PACKAGES = ("jax", "numpy", "scipy", "cvxpy")


def arguments(given):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that all of it runs")
    parser.add_argument("--only", default=",".join(render.TITLES), help="some sections, separated by commas")
    parser.add_argument("--out", type=Path, default=Path("out/benchmarks"))
    parser.add_argument("--write-docs", action="store_true")
    parser.add_argument("--render", action="store_true")
    options = parser.parse_args(given)
    options.only = options.only.split(",")
    unknown = [name for name in options.only if name not in render.TITLES]
    if unknown:
        parser.error(f"there is no section {unknown[0]!r}; there are {', '.join(render.TITLES)}")
    if options.quick and options.write_docs:
        parser.error("--quick measures nothing worth keeping; leave out --write-docs")
    return options


def installed():
    import cocoax

    yield "cocoax", cocoax.__version__
    for name in PACKAGES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue


def sources():
    """A fingerprint of the library that was measured."""
    from cocoax.core.fingerprint import library

    return library()[:12]


def machine():
    import jax

    from benchmarks.timing import cores

    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    cpu = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())
    device = jax.devices()[0]
    accelerator = "" if device.platform == "cpu" else f"{device.device_kind}, "
    return f"{accelerator}{cores()} cores ({cpu}), BLAS threads {os.environ['OPENBLAS_NUM_THREADS']}"


def prepare(device):
    """Run where asked, and keep what was compiled: a rerun needs no time for it."""
    import jax

    if device == "cpu":
        jax.config.update("jax_platforms", "cpu")
    elif jax.default_backend() != "gpu":
        sys.exit("JAX sees no GPU here")
    if jax.config.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", str(ROOT / ".jax_cache"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)


def command(options):
    """What to type for the same figures."""
    only = [] if options.only == list(render.TITLES) else [f"--only {','.join(options.only)}"]
    return " ".join(["python -m benchmarks", f"--device {options.device}", *["--quick"] * options.quick, *only])


def measured(options):
    """The result of this run, section by section; what is done is kept if a later section fails."""
    result = {"device": options.device, "sections": {}}
    for name in options.only:
        module, began = importlib.import_module(f"benchmarks.sections.{name}"), time.perf_counter()
        print(f"{render.TITLES[name]} ...", flush=True)
        rows = module.measure(options.device, options.quick)
        result["sections"][name] = {
            "about": module.__doc__,
            "command": command(options),
            "date": datetime.date.today().isoformat(),
            "versions": dict(installed()),
            "machine": machine(),
            "sources": sources(),
            "seconds": round(time.perf_counter() - began, 1),
            "rows": rows,
        }
        write(options.out, {options.device: result})
        print(f"{render.section(name, {options.device: result})}\n", flush=True)
    return result


def write(folder, results):
    folder.mkdir(parents=True, exist_ok=True)
    for device, result in results.items():
        (folder / f"{device}.json").write_text(json.dumps(result, indent=1) + "\n")


def draw(results, page):
    now = sources()
    older = [f"{device} {name}" for device, name, found in sections(results) if found["sources"] != now]
    page.write_text(render.page(results, older))
    try:
        drawn = render.plot(results, page.with_suffix(".png"))
    except ImportError:
        print("no plot: matplotlib is not installed")
        drawn = False
    print(f"wrote {page}{' and its plot' if drawn else ''}")
    if older:
        print(f"older than the code: {', '.join(older)}")


def kept():
    found = {device: KEPT / f"{device}.json" for device in render.DEVICES}
    return {device: json.loads(file.read_text()) for device, file in found.items() if file.exists()}


def sections(results):
    return [(device, name, found) for device in results for name, found in results[device]["sections"].items()]


def main(given=None):
    options = arguments(given)
    if not options.render:
        prepare(options.device)
        result = measured(options)
        draw({options.device: result}, options.out / "benchmarks.md")
        if options.write_docs:
            before = kept().get(options.device, {"sections": {}})
            write(KEPT, {options.device: {**result, "sections": {**before["sections"], **result["sections"]}}})
    if options.render or options.write_docs:
        draw(kept(), PAGE)


if __name__ == "__main__":
    main()
