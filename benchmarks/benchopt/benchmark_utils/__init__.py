"""What the solvers share; benchopt finds it by this file."""
