"""Private methods with one fault each, which an examination must find: the harness's own test.

Every mutant is FL-PROVIDER-DP with one thing wrong that was wrong in a published library, or is named in an audit.
`catalog` lists them; `mutant.yaml` trains one, whose name is its setting `mutant`.
"""
