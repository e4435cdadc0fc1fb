"""The routes of the API, and the page. Each declares whom it serves and what it may refuse."""
