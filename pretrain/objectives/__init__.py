"""What is learned: a weighted sum of terms, one file for each.

term.py         what a term says of itself, and what holds where it says nothing
table.py        all of them
objective.py    the weighted sum of those that are on
"""
