# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Shared by tools that build for other systems than this one: a compiler that targets an old glibc, and
# sources of libraries. Both come from the network once and stay in $toolbox, outside the tree. Source it
# after common.sh.

toolbox=${COLLWATCH_TOOLBOX:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/collwatch-toolbox}

# Installs Python packages of these versions in a virtual environment at $toolbox/python.
toolbox_python() {
	have=$toolbox/python/have
	[ "$(cat "$have" 2>/dev/null)" != "$*" ] || return 0
	mkdir -p "$toolbox"
	rm -rf "$toolbox/python"
	python3 -m venv "$toolbox/python" || die "no virtual environment: apt-get install python3-venv"
	# An index that sometimes returns an empty answer has all packages a while later.
	tries=0
	until "$toolbox/python/bin/pip" --quiet --disable-pip-version-check install "$@" >&2; do
		tries=$((tries + 1))
		[ "$tries" -lt 4 ] || die "pip could not install $*"
		sleep $((tries * 15))
	done
	printf '%s\n' "$*" >"$have"
}

# toolbox_source PACKAGE: unpacks its Debian source, verified by apt, to $toolbox/source/PACKAGE.
toolbox_source() (
	[ ! -d "$toolbox/source/$1" ] || return 0
	mkdir -p "$toolbox/apt/lists/partial" "$toolbox/apt/cache/archives/partial" "$toolbox/source"
	cd "$toolbox/apt"
	printf 'deb-src [signed-by=%s] http://deb.debian.org/debian bookworm main\n' \
		/usr/share/keyrings/debian-archive-keyring.gpg >sources.list
	own_apt() {
		apt-get -qq -o Dir::Etc::SourceList="$PWD/sources.list" -o Dir::Etc::SourceParts=/dev/null \
			-o Dir::State="$PWD" -o Dir::State::status=/dev/null -o Dir::Cache="$PWD/cache" \
			-o APT::Sandbox::User=root "$@" >&2
	}
	own_apt update && own_apt source --download-only "$1" || die "no source of $1"
	rm -rf unpacked
	mkdir unpacked
	tar -xf "$1"_*.orig.tar.* -C unpacked --strip-components 1
	mv unpacked "$toolbox/source/$1"
)

# toolbox_compiler ARCH GLIBC DIRECTORY: writes cc, ar and ranlib there, for programs on an older glibc.
toolbox_compiler() {
	export ZIG_GLOBAL_CACHE_DIR="$toolbox/zig" ZIG_LOCAL_CACHE_DIR="$3/zig"
	python=$toolbox/python/bin/python3
	cat >"$3/cc" <<-END
		#!/bin/sh
		exec "$python" -m ziglang cc -target $1-linux-gnu.$2 "\$@"
	END
	# zig's linker cannot read thin archives, which meson requests.
	cat >"$3/ar" <<-END
		#!/bin/sh
		how=\$(printf %s "\$1" | tr -d T)
		shift
		exec "$python" -m ziglang ar "\$how" "\$@"
	END
	cat >"$3/ranlib" <<-END
		#!/bin/sh
		exec "$python" -m ziglang ranlib "\$@"
	END
	chmod +x "$3/cc" "$3/ar" "$3/ranlib"
}

# debian_apt DIRECTORY ARGUMENT…: runs apt-get with Debian 12, its security updates, no state of this machine.
debian_apt() {
	state=$1
	shift
	apt-get -qq -o Dir::Etc::SourceList="$state/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State="$state" -o Dir::State::status=/dev/null -o Dir::Cache="$state/cache" \
		-o APT::Sandbox::User=root "$@" >>"$state/log" 2>&1
}

# toolbox_libraries PACKAGE…: unpacks Debian 12's archives and headers to $toolbox/libraries.
toolbox_libraries() (
	have=$toolbox/libraries/have
	[ "$(cat "$have" 2>/dev/null)" != "$*" ] || return 0
	state=$toolbox/apt-libraries
	rm -rf "$state" "$toolbox/libraries"
	mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/debs" "$toolbox/libraries"
	for type in deb deb-src; do
		for suite in "debian bookworm" "debian-security bookworm-security"; do
			printf '%s [signed-by=%s] http://deb.debian.org/%s main\n' $type \
				/usr/share/keyrings/debian-archive-keyring.gpg "$suite"
		done
	done >"$state/sources.list"
	cd "$state/debs"
	debian_apt "$state" update && debian_apt "$state" download "$@" && debian_apt "$state" source curl || {
		tail -n 20 "$state/log" >&2
		die "no libraries of Debian's"
	}
	for deb in *.deb; do
		dpkg-deb -x "$deb" "$toolbox/libraries"
		dpkg-deb --show --showformat='${source:Package} ${source:Version} ${Package}\n' "$deb" \
			>>"$toolbox/libraries/versions"
	done
	sed -n 's/^Version: /curl /p' curl_*.dsc >>"$toolbox/libraries/versions"
	mv curl-*/ "$toolbox/libraries/curl"
	printf '%s\n' "$*" >"$have"
)

# toolbox_curl TOOLS: builds a libcurl.a for HTTP alone into $toolbox/libraries/curl-installed. Debian's
# libcurl needs archives of Kerberos and LDAP, which Debian does not have.
toolbox_curl() (
	out=$toolbox/libraries/curl-installed
	[ ! -d "$out" ] || return 0
	usr=$toolbox/libraries/usr
	mkdir -p "$1/curl"
	cd "$1/curl"
	set --  --disable-shared --with-openssl="$usr" --with-ca-path=/etc/ssl/certs --without-ca-bundle \
		--without-zlib --without-brotli --without-zstd --without-libpsl --without-libidn2 \
		--without-nghttp2 --without-librtmp --without-libssh2 --without-gssapi --disable-ldap \
		--disable-ftp --disable-file --disable-rtsp --disable-dict --disable-telnet --disable-tftp \
		--disable-pop3 --disable-imap --disable-smb --disable-smtp --disable-gopher --disable-mqtt \
		--disable-manual --disable-ntlm --disable-alt-svc --disable-hsts \
		--disable-dependency-tracking CC="$1/cc" AR="$1/ar" RANLIB="$1/ranlib" \
		CFLAGS="-O2 -fPIC -fno-sanitize=undefined -ffile-prefix-map=$toolbox=." \
		CPPFLAGS="-isystem $usr/include -isystem $usr/include/$(uname -m)-linux-gnu" \
		LDFLAGS="-L$usr/lib/$(uname -m)-linux-gnu" LIBS="-ldl -lpthread"
	{
		PKG_CONFIG_LIBDIR=/nowhere "$toolbox/libraries/curl/configure" --host="$(uname -m)-linux-gnu" \
			--prefix="$out.new" "$@" && make -j"$(nproc)" -C lib && make -C lib install &&
			make -C include install && make install-pkgconfigDATA
	} >"log" 2>&1 || {
		tail -n 40 log >&2
		die "libcurl could not be built"
	}
	mv "$out.new" "$out"
	sed -i "s|$out.new|$out|g" "$out/lib/pkgconfig/libcurl.pc"
)

# The packages of a root: all that a build needs and the release has, under any release's name.
root_packages=gcc,g++,libc6-dev,meson,ninja-build,pkg-config,protobuf-c-compiler,libprotobuf-c-dev,libevent-dev
root_packages=$root_packages,libssl-dev,libconfuse-dev,libjansson-dev,libcurl4-openssl-dev,libdw-dev,libelf-dev,libiberty-dev
root_packages=$root_packages,libseccomp-dev,libcap-ng-dev,uthash-dev,python3,python3-venv,binutils,iproute2
root_packages=$root_packages,ca-certificates

# Packages to build the Debian packages, and to boot with them.
debian_packages=build-essential,debhelper,fakeroot,bpftool,clang,libbpf-dev,libcap-ng-dev,libconfuse-dev
debian_packages=$debian_packages,libcurl4-openssl-dev,libdw-dev,libelf-dev,libevent-dev,libjansson-dev
debian_packages=$debian_packages,libiberty-dev,libprotobuf-c-dev,libseccomp-dev,libslurm-dev,libssl-dev,meson,pkg-config,protobuf-c-compiler
debian_packages=$debian_packages,python3,scdoc,systemd-dev,uthash-dev,systemd-sysv,dbus,iproute2
# The daemon's package adds a user; the container has no network to install the tool for that.
debian_packages=$debian_packages,passwd

# toolbox_root RELEASE [NAME PACKAGES]: makes a Debian of that release at $toolbox/roots/NAME. Needs root.
toolbox_root() {
	set -- "$1" "$toolbox/roots/${2:-$1}" "${3:-$root_packages}"
	# A root made of other packages is useless.
	[ ! -d "$2" ] || [ "$(cat "$2.packages" 2>/dev/null)" != "$3" ] || return 0
	mkdir -p "$toolbox/roots"
	rm -rf "$2.new" "$2"
	# Once a release is archived, its package lists are past their expiry date.
	mmdebstrap --quiet --mode=root --variant=apt --include="$3" \
		--aptopt='APT::Install-Recommends "0"' --aptopt='Acquire::Check-Valid-Until "0"' \
		"$1" "$2.new" http://deb.debian.org/debian >&2 || die "no root of $1"
	printf '%s\n' "$3" >"$2.packages"
	mv "$2.new" "$2"
}

# in_root NAME PROGRAM…: runs it there, with /proc and /dev, in a mount namespace of its own.
in_root() (
	root_name=$1
	shift
	# shellcheck disable=SC2016 # for the shell inside
	unshare --mount --propagation private /bin/sh -c 'cd "$1" && shift && mount -t proc proc proc &&
		mount --rbind /dev dev && exec chroot . "$@"' sh "$toolbox/roots/$root_name" "$@"
)
