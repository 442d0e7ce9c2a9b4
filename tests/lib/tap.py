# SPDX-License-Identifier: Apache-2.0
"""Runs test functions one after the other, prints TAP: for programs that are not run by pytest, as those
with options of their own and those inside of a booted machine."""

import sys
import traceback


class Skip(Exception):
    """Raised by a test that cannot run here; says why."""


class Failure(Exception):
    """Raised by a test whose words tell enough: no traceback is printed."""


def collection():
    """The list of a file's tests, and the decorator that adds one to it."""
    tests = []

    def test(function):
        tests.append(function)
        return function
    return tests, test


def run(tests, call=lambda test: test()):
    """Every test gets its turn, through `call`. Ends the program: 1 when one failed."""
    failed = 0
    print(f"1..{len(tests)}", flush=True)
    for number, test in enumerate(tests, 1):
        name = f"{number} - {test.__name__}"
        try:
            call(test)
            print(f"ok {name}", flush=True)
        except Skip as why:
            print(f"ok {name} # SKIP {why}", flush=True)
        except Exception as error:  # pylint: disable=broad-except
            failed += 1
            text = str(error) if isinstance(error, Failure) else traceback.format_exc()
            print("# " + text.replace("\n", "\n# "))
            print(f"not ok {name}", flush=True)
    sys.exit(1 if failed else 0)
