"""The REPL: talk line by line, without cursor tricks, so that it works anywhere."""
