"""A client joins, changes or leaves a one-shot run (FL-SWAG, section 5.3)."""
