"""Tables, figures and pages from runs."""
