"""The objective: a weighted sum of terms, with one file for each term.

term.py         the interface of a term
table.py        the table of all terms
objective.py    the weighted sum
"""
