"""Results of a study: stored rows and their statistics."""
