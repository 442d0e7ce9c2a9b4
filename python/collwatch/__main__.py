# SPDX-License-Identifier: Apache-2.0
"""Replaces this process by the command."""

import os
import sys

import collwatch


def main():
    try:
        path = collwatch.command()
    except collwatch.Error as error:
        sys.exit(str(error))
    os.execv(path, ["collwatch"] + sys.argv[1:])


if __name__ == "__main__":
    main()
