"""What a finished unit costs, and which of several runs is the better buy."""
