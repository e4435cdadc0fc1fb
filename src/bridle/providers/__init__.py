"""Adapters to model APIs, one module each."""
