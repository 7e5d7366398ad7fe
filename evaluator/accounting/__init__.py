"""Privacy accounting: events as data, the accountants that bound their composition, and calibration to a budget."""
