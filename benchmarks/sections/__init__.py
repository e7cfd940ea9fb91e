"""One module a section, each with `measure(device, quick)`, which answers the rows of its table."""
