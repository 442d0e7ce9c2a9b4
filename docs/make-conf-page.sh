#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: make-conf-page.sh COLLWATCHD TEMPLATE SCDOC > PAGE
# The keys come from the daemon's own table, so that page and parser cannot disagree.
set -eu
keys=$(mktemp)
trap 'rm -f "$keys"' EXIT
"$1" --scdoc-config >"$keys"
sed -e "/^@KEYS@\$/{
r $keys
d
}" "$2" | "$3"
