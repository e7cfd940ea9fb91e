"""A fleet as an HTTP service: `cocoax serve FILE`."""
