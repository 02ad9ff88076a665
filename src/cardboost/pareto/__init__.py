"""Error against size: how small a model can be, and what every further term is worth on unseen rows."""
