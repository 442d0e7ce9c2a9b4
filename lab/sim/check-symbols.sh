#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the symbols that the simulated libraries export, and their kinds. Tools that intercept calls
# depend on both. Usage: check-symbols.sh LIBCUDA LIBNCCL NCCL_HEADER
set -eu

libcuda=$1 libnccl=$2 header=$3
failed=0

fail() {
	echo "FAIL: $*"
	failed=1
}

# Prints the exported symbols, without those that sanitizers and the linker add.
exports() {
	nm -D --defined-only "$1" | grep -vE ' (__|_init$|_fini$|_edata$|_end$)' || true
}

exports "$libcuda" | awk '{ print $3 }' | grep -v '^cu' && fail "libcuda exports other names"
exports "$libnccl" | awk '{ print $3 }' | grep -vE '^p?nccl' && fail "libnccl exports other names"

functions=$(sed -n 's/^NCCL_FN([^,]*, \([A-Za-z]*\).*/\1/p' "$header")
[ "$(echo "$functions" | wc -l)" -eq 41 ] || fail "the header does not declare 41 functions"
symbols=$(exports "$libnccl")
for f in $functions; do
	weak=$(echo "$symbols" | awk -v n="nccl$f" '$3 == n { print $1, $2 }')
	strong=$(echo "$symbols" | awk -v n="pnccl$f" '$3 == n { print $1, $2 }')
	[ "${weak#* }" = W ] || fail "nccl$f is not weak"
	[ "${strong#* }" = T ] || fail "pnccl$f is not strong"
	[ "${weak% *}" = "${strong% *}" ] || fail "nccl$f and pnccl$f are not the same code"
done

# The real library makes these calls through the PLT, so an interposer sees them. Ours must do the same.
slots=$(readelf -rW "$libnccl" | awk '/JUMP_SLOT/ { print $5 }')
for f in ncclBroadcast ncclGetUniqueId ncclCommGetAsyncError ncclGetVersion ncclGetErrorString; do
	echo "$slots" | grep -qx "$f" || fail "no call of $f goes through the PLT"
done
echo "$slots" | grep '^pnccl' && fail "calls of pnccl functions through the PLT"

readelf -dW "$libcuda" | grep -q 'SONAME.*\[libcuda.so.1\]' || fail "soname of libcuda"
readelf -dW "$libnccl" | grep -q 'SONAME.*\[libnccl.so.2\]' || fail "soname of libnccl"
readelf -dW "$libnccl" | grep 'NEEDED.*libcuda' && fail "libnccl is linked to libcuda"
exit $failed
