"""Sets of matrices: LMOs by singular pairs and eigenvectors."""
