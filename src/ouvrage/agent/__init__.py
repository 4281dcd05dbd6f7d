"""The node's side of the platform: the runner that takes orders, and what executes an attempt."""
