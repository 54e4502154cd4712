"""The papers' tables as data, with the results of runs beside them."""
