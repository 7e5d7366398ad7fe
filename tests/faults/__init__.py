"""What happens to submissions while the site's parts fail: counted, not argued.

`scenarios.py` is the table of the faults, `test_faults.py` runs each of them on real back ends, and `page.py` writes
the counts into docs/reliability.md. Traffic goes through the site's HTTP API, processes are ended by signals, and the
counts are the database's. Run by `make faults`, not by `make test`.
"""
