"""The world in three dimensions: solid things in rooms and on tables. The claims of captions are the same as for
drawings.
"""
