"""An assistant for people's expenses."""
