"""The steps from one shape of the tables to the next; Alembic finds them in `versions`."""
