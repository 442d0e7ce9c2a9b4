#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: make-conf-page.sh COLLWATCHD OPTION TEMPLATE SCDOC > PAGE
# The keys, or metrics, come from the daemon's own table, so that page and program cannot disagree.
set -eu
keys=$(mktemp)
trap 'rm -f "$keys"' EXIT
"$1" "$2" >"$keys"
sed -e "/^@KEYS@\$/{
r $keys
d
}" "$3" | "$4"
