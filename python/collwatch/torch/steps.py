# SPDX-License-Identifier: Apache-2.0
"""Sets of steps as users write them: "1,3,10-20"; also a number, a range, or any numbers."""

import operator


def _has_several(given):
    try:  # a tensor of one number has __iter__, but iterating over it fails
        iter(given)
    except TypeError:
        return False
    return True


class Steps:
    def __init__(self, given, what):
        """what: the option's name, for errors."""
        self._ranges, self._what = [], what
        if given is None:
            return
        if isinstance(given, str):
            given = given.split(",")
        elif isinstance(given, (range, bytes)) or not _has_several(given):
            given = [given]
        self._ranges = [self._range(each) for each in given]

    def _range(self, given):
        if isinstance(given, range) and given and given.step > 0 and given.start >= 0:
            return given
        if isinstance(given, str):
            first, dash, last = (part.strip() for part in given.partition("-"))
            if first.isascii() and first.isdigit() and (not dash or last.isascii() and last.isdigit()):
                found = range(int(first), int(last if dash else first) + 1)
                if found:
                    return found
        elif not isinstance(given, bool):
            try:
                n = operator.index(given)
                if n >= 0:
                    return range(n, n + 1)
            except TypeError:
                pass
        raise ValueError("%s: %r is not a step: give numbers from 0 on and ranges, such as \"1,3,10-20\""
                         % (self._what, given))

    def __contains__(self, step):
        return any(step in each for each in self._ranges)

    def __bool__(self):
        return bool(self._ranges)

    def last(self):
        return max(each[-1] for each in self._ranges)

    def __str__(self):
        return ",".join(str(each[0]) if len(each) == 1 else "%d-%d" % (each[0], each[-1]) + (
            "" if each.step == 1 else " by %d" % each.step) for each in self._ranges)
