"""Counts up to which the front end records a computation in one way, and above them in another.

They are decided while a function is traced or lowered, before anything is priced. Limits that hold
for the sake of right results (exact ranges of dtypes, say) stand beside what they protect.
"""

# functions that are written by hand -------------------------------------------------

PIECES_OF_A_CHAIN = 16
"""Terms of a chain of one operator that are looked at for all pieces of an array: a chain of
thousands would be walked for each of them.
"""
PIECES_OF_A_LOOP = 64
"""Pieces of a join that are looked at for a loop in Python: heads, groups and experts are no more.
"""
PLACES_OF_A_GROUP = 4
"""Places of a group of neighbours: each is computed by itself."""
DEPTH = 4
"""Operations one in another that are looked through for groups."""

# functions that become folds, comparisons or calls of a library ---------------------

UNROLLED = 16
"""Elements of a window at most that are folded one by one."""
FACTORS = 4
"""Elements of an axis at most that are multiplied one by one."""
ONE_BY_ONE = 4
"""Elements around an axis at most that are read one by one; of more, positions are looked up."""
MOST_COMPARED = 8
"""Positions a row of a scatter that are compared: the experts of a token, the class of a sample."""
MOST_CHOSEN = 8
"""First elements of a row that are found in rounds: each folds a row once more, and compiling takes
longer with each.
"""
MOST_COUNTED = 64
"""Elements of a row of which each pair is compared for the first of them. On an H200 the first 32
of 64 take 3 microseconds for 32 rows and some 12 for 256, beside 10 and 11 by ``torch.topk``; for
4096 rows 69 beside 20. Counts are integers, for which the check of first results allows no
roundings; added as floats they take two thirds of that time.
"""
MOST_SORTED = 32
"""Elements of a row that are put in order by comparing each pair: 4096 rows of 16 take 10
microseconds there, as by ``torch.sort``, and of 64 elements 61 beside 19.
"""

# axes and parts of arrays -----------------------------------------------------------

MOST_PARTS = 8
"""Parts of an operand at most of which each has a product of its own."""
NEAREST = 16
"""How many other ways to read an array a read is compared with: the last ones before it."""
SHORT = 16
"""An axis that is known to be so short makes no lines by itself."""
LINE = 32
"""Elements in a row of memory that a block reads, at least: a sector of two or four bytes each."""
BLOCKED_AXES = 3
"""Axes of a block at most, beside those that are known to be short."""
