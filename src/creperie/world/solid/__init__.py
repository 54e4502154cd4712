"""The world in three dimensions: solid things in rooms and on tables, about which the same claims are made as about
drawings.
"""
