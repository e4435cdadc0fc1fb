"""One step a module, in the order of their names. A step that was ever released never changes."""
