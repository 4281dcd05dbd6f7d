"""The platform's server: routes, the services behind them, and reconcilers.

Decides who may do what and records it; what is placed where is decided by ``placement``, what anything costs by ``pricing``
and ``books``. Nothing here touches a sandbox: the runner asks for orders.
"""
