"""Catalogues of offers as others publish them, one module for each form, and how a form is told."""
