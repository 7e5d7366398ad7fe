"""What a model leaks about the providers that it was trained on, measured by attacks: a library without a site.

An attack that fails proves nothing: only ε bounds what any attack can do. An attack that succeeds shows a leak.
"""
