"""The tools that a model can ask for, one module each, with the text it reads beside it."""
