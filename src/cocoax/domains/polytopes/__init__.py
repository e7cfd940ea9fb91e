"""Polytopes: graphs, matchings, matroids, and linear programs solved by HiGHS."""
