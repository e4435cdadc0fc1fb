"""The parts of a screen: composer, completion, conversation, status."""
