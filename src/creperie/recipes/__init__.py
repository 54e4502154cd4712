"""Whole stories, told with the other rooms."""
