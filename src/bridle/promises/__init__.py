"""What an adapter promises: protocols, and the values that pass through them."""
