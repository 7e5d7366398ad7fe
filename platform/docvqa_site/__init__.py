"""The site of the benchmark: a Django project with one app per noun."""
