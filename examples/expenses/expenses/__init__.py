"""A chat assistant that keeps expenses."""
