"""Configuration of a run: fields, methods and their settings, user code."""
