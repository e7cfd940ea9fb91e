"""`import cocoax` costs next to nothing: a name is loaded when first asked for, with what it needs and no more."""

import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import cocoax as cx

PACKAGES = [cx, cx.baselines, cx.data, cx.domains, cx.dual, cx.learners, cx.primal, cx.problems, cx.problems.real]
PACKAGES += [cx.testing, cx.theory]
EXTRAS = [
    "clarabel",
    "cvxpy",
    "highspy",
    "matplotlib",
    "networkx",
    "optax",
    "polars",
    "rich",
    "scipy",
    "typer",
]


def in_a_new_process(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def loaded_by(code):
    """The names of all modules that some code has loaded in a new process."""
    done = in_a_new_process(f"import sys\n{code}\nprint(*sys.modules)")
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def ours(modules):
    return {name for name in modules if name.startswith("cocoax.")}


def test_importing_the_package_loads_no_part_of_it():
    loaded = loaded_by("import cocoax")
    assert ours(loaded) == {"cocoax.core", "cocoax.core.lazy"} and not loaded & {"jax", "equinox", "numpy"}


def test_a_name_loads_what_it_needs():
    domain = ours(loaded_by("import cocoax; cocoax.domains.Box"))
    assert "cocoax.domains.vectors.balls" in domain
    others = ("domains.matrices.nuclear_norm", "domains.polytopes.graphs", "learners", "problem.problem")
    assert not domain & {f"cocoax.{name}" for name in others}
    learner = ours(loaded_by("import cocoax; cocoax.learners.Auto"))
    assert "cocoax.learners.auto" in learner
    others = ("learners.paper", "domains.vectors.balls", "sessions.session", "comparators.hindsight")
    assert not learner & {f"cocoax.{name}" for name in others}


def test_no_public_name_needs_an_optional_dependency_or_makes_an_array():
    """An array made by a module that is first asked for inside a `jax.jit` would be that trace's."""
    names = [f"{package.__name__}.{name}" for package in PACKAGES for name in package.__all__]
    loaded = loaded_by("\n".join(["import cocoax", *names, "import jax", "assert not jax.live_arrays()"]))
    assert {"cocoax.domains.polytopes.graphs", "cocoax.games.minimize", "cocoax.sessions.session"} < loaded
    assert not loaded & set(EXTRAS)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_name_is_there_and_listed(package):
    starred = {}
    exec(f"from {package.__name__} import *", starred)
    assert package.__all__ and set(package.__all__) <= set(dir(package)) & starred.keys()
    assert {"__doc__", "__all__"} <= set(dir(package))
    for name in package.__all__:
        assert getattr(package, name) is starred[name] is vars(package)[name]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_no_module_takes_the_place_of_a_name(package):
    """Importing `cocoax.play` would make `cx.play` a module, so no module is called as a function is."""
    modules = {each.name for each in pkgutil.iter_modules(package.__path__)}
    for name in modules & set(package.__all__):
        assert getattr(package, name) is importlib.import_module(f"{package.__name__}.{name}")
    assert all(inspect.isfunction(each) for each in (cx.play, cx.hindsight, cx.minimize, cx.theory.rates))


def test_an_unknown_name_is_an_attribute_error_with_a_suggestion():
    assert not hasattr(cx.domains, "Simplices")
    with pytest.raises(ImportError, match="cannot import name 'Simplices'"):
        from cocoax.domains import Simplices  # noqa: F401  # pyright: ignore[reportAttributeAccessIssue]
    said = in_a_new_process("import cocoax as cx; cx.domains.ProbabiltySimplex").stderr
    sentence = "module 'cocoax.domains' has no attribute 'ProbabiltySimplex'. Did you mean: 'ProbabilitySimplex'?"
    assert said.splitlines()[-1] == f"AttributeError: {sentence}"


def test_the_lab_is_there_but_not_listed():
    """What it needs may not be installed, and `help(cocoax)` asks for all that is listed."""
    loaded = loaded_by("import cocoax; assert 'lab' not in dir(cocoax); cocoax.lab.Study")
    assert "cocoax.lab.study" in loaded
