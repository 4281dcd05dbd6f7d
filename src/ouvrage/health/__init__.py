"""From what probes saw to verdicts, and from verdicts to fences and remedies: the node agent's pure heart."""
