#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: make-conf-page.sh PROGRAM OPTION TEMPLATE SCDOC [LAB] > PAGE
# The keys, metrics or variables, and the exit statuses at @EXITS@, come from the program's own tables, so that page
# and program cannot disagree.
# What stands between @LAB@ and @END@ is of the laboratory: without the word LAB it is left out.
set -eu
keys=$(mktemp)
exits=$(mktemp)
trap 'rm -f "$keys" "$exits"' EXIT
"$1" "$2" >"$keys"
grep -q '^@EXITS@$' "$3" && "$1" --scdoc-exits >"$exits"
lab='/^@LAB@$/,/^@END@$/d'
[ "${5:-}" = "" ] || lab='/^@LAB@$/d; /^@END@$/d'
sed -e "$lab" -e "/^@KEYS@\$/{
r $keys
d
}" -e "/^@EXITS@\$/{
r $exits
d
}" "$3" | "$4"
