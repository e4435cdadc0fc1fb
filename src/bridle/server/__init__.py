"""Faces that are reached over a wire. Each is a package of its own and knows no other."""
