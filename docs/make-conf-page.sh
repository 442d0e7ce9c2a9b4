#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: make-conf-page.sh PROGRAM OPTION TEMPLATE SCDOC > PAGE
# The keys, metrics or variables come from the program's own table, so that page and program cannot disagree.
set -eu
keys=$(mktemp)
trap 'rm -f "$keys"' EXIT
"$1" "$2" >"$keys"
sed -e "/^@KEYS@\$/{
r $keys
d
}" "$3" | "$4"
