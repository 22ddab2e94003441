# SPDX-License-Identifier: MIT
"""The exact Mann-Whitney test, so that comparing two commits needs no package."""


def rank(values):
    """Twice the rank of each value; equal ones share the middle of theirs."""
    ordered = sorted(values)
    return [ordered.index(value) * 2 + ordered.count(value) + 1 for value in values]


def chance(before, after):
    """The probability that two samples of one and the same thing lie as far apart as these, in either direction."""
    ranks = rank(before + after)
    count, total = len(before), sum(ranks)
    ways = [[0] * (total + 1) for _ in range(count + 1)]  # [how many are chosen][sum of their ranks]
    ways[0][0] = 1
    for value in ranks:
        for chosen in range(count, 0, -1):
            for reached in range(total, value - 1, -1):
                ways[chosen][reached] += ways[chosen - 1][reached - value]
    here, middle = sum(ranks[:count]), total * count / len(ranks)
    as_far = sum(number for reached, number in enumerate(ways[count]) if abs(reached - middle) >= abs(here - middle))
    return as_far / sum(ways[count])
