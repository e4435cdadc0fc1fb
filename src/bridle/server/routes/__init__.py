"""The routes of the API, and the page. Each says what it may refuse, and whom it answers."""
