"""The studio: benchmarks, audits, runs and studies of a folder in the browser, served to this machine only."""
