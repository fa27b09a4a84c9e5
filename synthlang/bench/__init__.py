"""How fast and how large: ``python -m synthlang.bench`` prints measurements as JSON.

Every speed is the median of some repeats, stands beside all of them, and beside a plain Python
loop that does the same on the same data in the same run: on a busy machine the ratio is what
can be compared.
"""
