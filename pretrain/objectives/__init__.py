"""The objective: a weighted sum of terms, one file for each.

term.py         the interface of a term, and its defaults table.py        all terms objective.py    the weighted sum
of the terms in use
"""
