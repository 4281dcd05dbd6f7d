"""The console's pages: what each shows, made from what the services answer.

Decides which figures a page leads with and what it offers to do; a page never reads a table or a fact by itself, so that it
cannot show what an address under ``/v1`` would refuse.
"""
