"""One module per step, named by its number; a step that was released is never edited."""
