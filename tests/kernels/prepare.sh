#!/bin/sh
# Creates the files that run.sh boots, in build/kernels: the newest kernel of each series that users have, and an initramfs with what
# is in target/debug. Needs apt (the kernels are resolved, verified and downloaded by it, never installed),
# busybox-static, cpio, python3 and the network. BINARIES and TESTS name other places than target/debug and tests: TESTS
# must be the folder that the test binary was compiled in.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

binaries=${BINARIES:-$root/target/debug}
tests=${TESTS:-$root/tests}

for tool in apt-get dpkg-deb cpio busybox python3 strip; do
    command -v $tool >/dev/null 2>&1 || stop "$tool is missing. Install it with: apt-get install busybox-static cpio binutils"
done

# Runs apt with separate sources and state, in build/kernels/NAME.
apt_of() {
    name=$1 tool=$2
    shift 2
    state=$build/$name/apt
    "$tool" -o "Dir::State=$state" -o "Dir::State::status=$state/status" -o "Dir::Cache=$state/cache" \
        -o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=/dev/null -o APT::Sandbox::User=root "$@"
}

# Prints the newest PACKAGE, or its dependency with this name, from the sources on standard input.
resolve() {
    mkdir -p "$build/$1/apt/lists/partial" "$build/$1/apt/cache/archives/partial"
    : >"$build/$1/apt/status"
    cat >"$build/$1/apt/sources.list"
    apt_of "$1" apt-get -qq update 2>&1 | grep -v "^W: GPG error" || true
    apt_of "$1" apt-cache --no-all-versions show "$2" | grep -o 'linux-image-[0-9][^ ,(]*' | head -n 1
}

# download NAME PACKAGE: downloads a package and prints the path of the file.
download() {
    (cd "$build/$1" && rm -f "$2"_*.deb && apt_of "$1" apt-get -qq download "$2" && ls "$build/$1/$2"_*.deb)
}

kernel() {
    [ -s "$build/$1/vmlinuz" ] && { echo "$1: $(cat "$build/$1/version")"; cat >/dev/null; return; }
    package=$(resolve "$1" "$2")
    [ -n "$package" ] || stop "$1: no kernel found"
    file=$(download "$1" "$package")
    dpkg-deb --fsys-tarfile "$file" | tar -xO --wildcards './boot/vmlinuz-*' >"$build/$1/vmlinuz"
    echo "$package $(dpkg-deb -f "$file" Version), SHA-256 $(sha256sum <"$file" | cut -d' ' -f1)" >"$build/$1/version"
    rm "$file"
    echo "$1: $(cat "$build/$1/version")"
}

debian=/usr/share/keyrings/debian-archive-keyring.gpg
ubuntu=/usr/share/keyrings/ubuntu-archive-keyring.gpg
[ -f $debian ] && debian=signed-by=$debian || { debian=trusted=yes; echo "no keyring for Debian: indexes are trusted"; }
[ -f $ubuntu ] && ubuntu=signed-by=$ubuntu || { ubuntu=trusted=yes; echo "no keyring for Ubuntu: indexes are trusted"; }
kernel debian12 linux-image-amd64 <<END
deb [arch=amd64 $debian] https://deb.debian.org/debian bookworm main
deb [arch=amd64 $debian] https://deb.debian.org/debian-security bookworm-security main
END
kernel ubuntu2404 linux-image-generic <<END
deb [arch=amd64 $ubuntu] https://archive.ubuntu.com/ubuntu noble main
deb [arch=amd64 $ubuntu] https://archive.ubuntu.com/ubuntu noble-updates main
END
kernel debian13 linux-image-amd64 <<END
deb [arch=amd64 $debian] https://deb.debian.org/debian trixie main
deb [arch=amd64 $debian] https://deb.debian.org/debian-security trixie-security main
END

# The AppArmor profile is loaded with Ubuntu's parser and the libraries of that parser.
apparmor=$build/ubuntu2404/root
if [ ! -d "$apparmor" ]; then
    mkdir -p "$apparmor.part"
    for package in apparmor libapparmor1 libc6 libstdc++6 libgcc-s1; do
        file=$(download ubuntu2404 "$package")
        echo "ubuntu2404: $package $(dpkg-deb -f "$file" Version)"
        dpkg-deb --fsys-tarfile "$file" | tar -x -C "$apparmor.part"
        rm "$file"
    done
    mv "$apparmor.part" "$apparmor"
fi

# The root directory of the guest. Every file has the same path as on this machine.
guest=$build/root
rm -rf "$guest"
mkdir -p "$guest/bin" "$guest/etc" "$guest/dev" "$guest/proc" "$guest/sys" "$guest/tmp" "$guest/root" "$guest/run"
chmod 1777 "$guest/tmp"
cp "$(command -v busybox)" "$guest/bin/"
for name in $(busybox --list); do
    [ "$name" = busybox ] || ln -s busybox "$guest/bin/$name"
done
printf 'root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/tmp:/bin/sh\n' >"$guest/etc/passwd"
echo 'root:*:::::::' >"$guest/etc/shadow" && chmod 600 "$guest/etc/shadow"

copy() {
    mkdir -p "$guest$(dirname "$1")"
    cp -a "$1" "$guest$1"
}
with_libraries() {
    for library in $(ldd "$1" | grep -o '/[^ ]*'); do
        [ -e "$guest$library" ] || { mkdir -p "$guest$(dirname "$library")"; cp -L "$library" "$guest$library"; }
    done
}

python=$(readlink -f /usr/bin/python3)
standard=$("$python" -I -c 'import os; print(os.path.dirname(os.__file__))')
copy "$python"
ln -sf "$(basename "$python")" "$guest/usr/bin/python3"
copy "$standard"
(cd "$guest$standard" && rm -rf test idlelib ensurepip tkinter lib2to3 turtledemo pydoc_data config-* dist-packages site-packages)
find "$guest$standard" -name __pycache__ -prune -exec rm -rf {} +
for file in "$python" "$standard"/lib-dynload/*.so; do with_libraries "$file"; done

newest=$(find "$binaries/deps" -maxdepth 1 -name 'product-*' -perm -100 -printf '%T@ %p\n' 2>/dev/null | sort -rn | sed -n '1s/.* //p')
test_program=${SANDBOX_TESTS:-$newest}
[ -n "$test_program" ] || stop "the suites are not built: cargo test -p lockhouse-tests --test product --no-run"
mkdir -p "$guest$root/target/debug/deps"
for file in lockhouse lockhouse-worker liblockhouse_python.so native-worker native-service lacking; do
    [ -f "$binaries/$file" ] || stop "$binaries/$file is missing: cargo build --workspace"
    strip -o "$guest$root/target/debug/$file" "$binaries/$file"
    with_libraries "$binaries/$file"
done
strip -o "$guest$root/target/debug/deps/product" "$test_program"
mkdir -p "$guest$tests" "$guest$tests/../worker" "$guest/profiles"
cp -r "$root/tests/hostile" "$guest$tests/"
cp -r "$root/worker/seccomp" "$guest$tests/../worker/"
# The certificate for 127.0.0.1 and its key, with which the tests of the product serve.
cp -r "$root/tests/tests/http/tls" "$guest/tls"
[ ! -d "$root/packaging/apparmor" ] || cp "$root"/packaging/apparmor/* "$guest/profiles/"
cp -r "$apparmor" "$guest/ubuntu"
rm -rf "$guest/ubuntu/usr/share"

echo "$root/target/debug" >"$guest/etc/lockhouse-binaries"
cp "$here/init" "$here"/*.py "$guest/"
(cd "$guest" && find . | cpio -o -H newc --owner 0:0 --quiet | gzip -1) >"$build/initramfs.cpio.gz"
echo "initramfs: $(du -h "$build/initramfs.cpio.gz" | cut -f1), $(du -sh "$guest" | cut -f1) unpacked"
