"""One step: its equations, how they are solved and confirmed, where the results go."""
