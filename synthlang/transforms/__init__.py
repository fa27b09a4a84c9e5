"""The transforms, a kind a file; base.py says what each is, table.py has all of them."""
