"""What the screen shows, as values. No module here imports Textual."""
