"""The parts that all pages share: base templates, filters and form rendering."""
