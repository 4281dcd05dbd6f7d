"""The command line: verbs that parse, call and print. Imports are lazy, so help is instant."""
