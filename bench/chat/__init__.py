"""The chat of many users: its rate beside a bare handler's, and what a long conversation costs."""
