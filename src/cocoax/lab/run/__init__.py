"""Playing a study: batches of games, devices, processes, progress."""
