"""Figures for papers and pages: small functions from plain arrays to matplotlib figures, in one style.

`creperie.reporting.figures.catalog` lists their names and the data that each one reads.
"""
