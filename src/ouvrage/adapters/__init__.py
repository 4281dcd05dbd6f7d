"""One module per outside system; each hides its quirks and says when it does not know."""
