"""Privacy accounting: mechanisms as data, the accountants that bound them, and calibration to a budget.

The adjacency is always add/remove of one provider, with all its documents.
"""
