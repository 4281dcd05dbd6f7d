"""The nouns: what a run, and later a site, node, offer or lease, states about itself."""
