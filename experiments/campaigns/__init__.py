"""Attempts to break what is promised, a module a case of the campaign."""
