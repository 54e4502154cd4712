"""Figures for papers and pages, in one style. Small functions draw them with matplotlib from plain arrays.

`creperie.reporting.figures.catalog` lists the figures by name, each with the data that it needs.
"""
