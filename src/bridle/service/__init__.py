"""One service for the sessions of this machine, under every interface."""
