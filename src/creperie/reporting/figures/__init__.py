"""Figures for papers and pages: small functions from plain arrays to matplotlib figures, in one style.

`creperie.reporting.figures.catalog` names them and knows which data each reads.
"""
