"""Components: their base class, their settings, and their names in flags."""
