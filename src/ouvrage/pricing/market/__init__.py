"""Others' offers and what finishing a piece of work would cost under each: the core of a quote."""
