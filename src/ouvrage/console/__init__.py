"""Pages and figures: a typed view-model, a template, SVG drawn here."""
