# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Shared by tools/demo and tools/test: packages and builds. Sourced, with $root set.
# shellcheck disable=SC2154 # root

die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# Prints the packages of the list for the given purposes ("build test") that are not installed.
missing_packages() {
	for purpose in "$@"; do
		sed -n "s/^\([^# ][^ ]*\) *$purpose .*/\1/p" "$root/tools/packages"
	done | while read -r package; do
		dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null |
			grep -qx installed || printf '%s\n' "$package"
	done
}

explain_packages() {
	for package in "$@"; do
		sed -n "s/^\($package\) *[a-z]* *\(.*\)/  \1: \2/p" "$root/tools/packages" >&2
	done
}

# ensure_packages YES PURPOSE…: installs missing packages; asks unless YES is 1 or CI is set.
ensure_packages() {
	yes=$1
	shift
	if ! command -v dpkg-query >/dev/null; then
		printf 'This is not Debian; the build needs what these packages contain:\n' >&2
		sed -n 's/^\([^# ][^ ]*\) *build *\(.*\)/  \1: \2/p' "$root/tools/packages" >&2
		command -v meson >/dev/null || die "meson is not here"
		return 0
	fi
	missing=$(missing_packages "$@" | tr '\n' ' ')
	[ -n "$missing" ] || return 0
	printf 'Debian packages that are missing:\n' >&2
	# shellcheck disable=SC2086 # a list of names
	explain_packages $missing
	[ "$(id -u)" = 0 ] || die "install them as root: apt-get install ${missing% }"
	if [ "$yes" != 1 ] && [ "${CI:-}" != true ]; then
		[ -t 0 ] || die "not a terminal: give --yes to install them"
		printf 'Install them now? [y/N] ' >&2
		read -r answer
		case $answer in [yY]*) ;; *) die "nothing was installed" ;; esac
	fi
	# An old package list names files that no longer exist: refresh it once.
	# shellcheck disable=SC2086
	install_packages $missing ||
		{ apt-get update -q >&2 && install_packages $missing; } ||
		die "apt-get could not install them"
}

# Waits while another process installs packages.
install_packages() {
	DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y -q \
		--no-install-recommends "$@" >&2
}

# build DIRECTORY MESON-OPTION…: configures a new directory (with $BUILD_OPTIONS too) and builds it (only
# $targets, if set); quiet unless it fails. Two builds in one directory would overwrite each other's files, so
# the second one waits.
build() {
	mkdir -p "$1"
	build_in_turn "$@" 9<"$1"
}

build_in_turn() {
	if command -v flock >/dev/null && ! flock -n 9; then
		printf 'waiting for another build in %s\n' "${1#"$root"/}" >&2
		flock 9
	fi
	build_alone "$@" 9<&-
}

build_alone() {
	dir=$1
	shift
	log=$(mktemp)
	if [ ! -f "$dir/build.ninja" ]; then
		printf 'configuring %s\n' "${dir#"$root"/}" >&2
		# shellcheck disable=SC2086 # a list of options
		meson setup "$dir" "$root" ${BUILD_OPTIONS:-} "$@" >"$log" 2>&1 || {
			cat "$log" >&2
			rm -rf "$dir" "$log"
			die "meson could not configure the build"
		}
	fi
	# shellcheck disable=SC2086 # a list of names
	ninja -C "$dir" -n ${targets:-} 2>/dev/null | grep -q 'no work to do' ||
		printf 'building %s\n' "${dir#"$root"/}" >&2
	# shellcheck disable=SC2086
	ninja -C "$dir" ${targets:-} >"$log" 2>&1 || {
		tail -n 60 "$log" >&2
		rm -f "$log"
		die "the build failed"
	}
	rm -f "$log"
}
