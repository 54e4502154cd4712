"""The web pages where people validate, correct, rate and compete, and what becomes of their answers."""
