"""The platform's tables: what stands now, beside the facts that say what happened.

Each module reads and writes a few tables over a connection that the caller opened, and decides nothing: who may do what is
``server``'s. All but the credentials can be made anew from the facts.
"""
