"""The studio: a folder of benchmarks, audits, runs and studies in the browser, served to this machine only."""
