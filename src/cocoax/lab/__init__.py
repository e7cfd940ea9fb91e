"""The lab: many games, their tables, figures and reports. Needs `cocoax[lab]`."""

try:
    from .figures import plot as plot
    from .study import Study as Study
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f'{error.name} is missing; cocoax.lab needs it: pip install "cocoax[lab]"') from None
