#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fails if the agent needs a newer glibc than we promise. The loader puts one build into programs of
# any container. A single symbol of a newer version would end each of these programs before main().
#
#	check-abi.sh READELF LIBRARY [STAMP]
#
# Prints each symbol that needs a version above the floor. Also prints each such version that no
# symbol names (GLIBC_ABI_DT_RELR: relocations that an older loader cannot read).
set -eu
LC_ALL=C
export LC_ALL

floor=2.28
readelf=$1
library=$2

symbols=$("$readelf" -W --dyn-syms "$library")
versions=$("$readelf" -W --version-info "$library")
printf '%s\n===\n%s\n' "$symbols" "$versions" | awk -v floor="$floor" -v library="$library" '
function is_above(version,    part, limit) {
	if (version !~ /^GLIBC_[0-9]+\.[0-9]+(\.[0-9]+)?$/)
		return 1
	sub(/^GLIBC_/, "", version)
	split(version, part, ".")
	split(floor, limit, ".")
	return part[1] + 0 > limit[1] + 0 || (part[1] == limit[1] && part[2] + 0 > limit[2] + 0)
}

function refuse(what) {
	printf "%s: needs %s: above GLIBC_%s\n", library, what, floor
	refused++
}

/^===$/ { in_versions = 1 }
/^Version / { in_needs = $2 == "needs" }

!in_versions && $7 == "UND" && $8 ~ /@/ {
	version = $8
	sub(/^.*@/, "", version)
	bound[version] = 1
	seen++
	if (is_above(version))
		refuse($8)
}

in_versions && in_needs && match($0, /Name: [^ ]+/) {
	version = substr($0, RSTART + 6, RLENGTH - 6)
	if (!(version in bound) && is_above(version))
		refuse(version)
}

END {
	if (!seen) {
		printf "%s: no versions of symbols were found\n", library
		refused++
	}
	exit refused > 0
}' >&2
[ $# -lt 3 ] || : >"$3"
