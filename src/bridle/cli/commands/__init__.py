"""The commands of `bridle`, one module each."""
