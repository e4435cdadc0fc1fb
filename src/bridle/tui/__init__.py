"""The terminal interface. Importing this package does not import Textual."""
