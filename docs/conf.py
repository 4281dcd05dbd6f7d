"""How Sphinx builds these pages: Markdown through MyST, the Furo theme, every warning an error.

Pages stay plain CommonMark wherever they can, so that they read well in a repository browser too.
Nothing outside the repository is contacted while building.
"""

project = "Ouvrage"
author = "The Ouvrage developers"
extensions = ["myst_parser"]
myst_enable_extensions = ["deflist"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "Ouvrage"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
myst_heading_anchors = 3
suppress_warnings = ["myst.iref_ambiguous"]
