#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: make-conf-page.sh PROGRAM OPTION TEMPLATE SCDOC [LAB] > PAGE
# The keys, metrics or variables come from the program's own table, so that page and program cannot disagree.
# What stands between @LAB@ and @END@ is of the laboratory: without the word LAB it is left out.
set -eu
keys=$(mktemp)
trap 'rm -f "$keys"' EXIT
"$1" "$2" >"$keys"
lab='/^@LAB@$/,/^@END@$/d'
[ "${5:-}" = "" ] || lab='/^@LAB@$/d; /^@END@$/d'
sed -e "$lab" -e "/^@KEYS@\$/{
r $keys
d
}" "$3" | "$4"
