"""The report of a study: an HTML page, tables and figures."""
