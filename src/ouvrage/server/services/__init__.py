"""What the platform does when asked, for routes and pages alike.

Each function takes the open transaction or connection, the platform and the actor; it checks the right, then the request,
then writes facts, tables and the line of the trail together.
"""
