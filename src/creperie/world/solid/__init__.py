"""The world in three dimensions: solid things in rooms and on tables, with the same claims as the drawn world."""
