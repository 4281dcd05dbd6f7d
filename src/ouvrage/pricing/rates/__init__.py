"""Rate plans: dated billing rules as data, and the engine that turns usage into charges by them."""
