"""Messages between server, runner and command line, as pydantic models: form, not meaning.

What travels is checked here and turned into the program's own values; nothing is decided. Field names are those of the nouns in
``model/``; moments are integers of microseconds since 1970 (UTC), money is decimal text.
"""
