"""The chat over HTTP: who asks, what is refused, the routes, the live list, the page."""
