"""An owner's books: from what was stated, imported and measured to what a machine earned."""
