"""GPU kernels of spectral LMOs, and the choice between them."""
