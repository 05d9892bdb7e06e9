#!/bin/sh
# Installs the release build below PREFIX, or removes what it has installed there: install.sh [--uninstall] PREFIX
# Installed files: the program, its worker, manual pages, and completions for bash, zsh and fish. Their paths below PREFIX are
# listed in PREFIX/share/lockhouse/installed-files. BINARIES: directory of the binaries, by default target/release.
set -eu

usage="usage: install.sh [--uninstall] PREFIX"

# Removes the listed files. A path that does not belong to Lockhouse is not removed, whatever the list says.
uninstall() {
    if [ ! -f "$list" ]; then
        echo "install.sh: nothing is installed below $prefix: there is no file $list" >&2
        exit 1
    fi
    while read -r file; do
        case $file in
            *..* | /*) ;;
            bin/lockhouse | lib/lockhouse/* | share/lockhouse/* | share/man/man1/lockhouse*.1) rm -f "$prefix/$file" ;;
            share/bash-completion/completions/lockhouse) rm -f "$prefix/$file" ;;
            share/zsh/site-functions/_lockhouse) rm -f "$prefix/$file" ;;
            share/fish/vendor_completions.d/lockhouse.fish) rm -f "$prefix/$file" ;;
        esac
    done <"$list"
    rm -f "$list"
    rmdir "$prefix/lib/lockhouse" "$prefix/share/lockhouse" 2>/dev/null || true
    echo "removed Lockhouse from $prefix; configuration and state are kept"
}

# Installs a file: install_file MODE SOURCE PATH, with PATH below PREFIX.
install_file() {
    install -D -m "$1" "$2" "$prefix/$3"
    echo "$3" >>"$stage/installed-files"
}

if [ "${1:-}" = --uninstall ]; then
    prefix=${2:?$usage}
    list=$prefix/share/lockhouse/installed-files
    uninstall
    exit
fi
prefix=${1:?$usage}
list=$prefix/share/lockhouse/installed-files
built=${BINARIES:-$(dirname "$0")/../target/release}
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir "$stage/man" "$stage/completions"
"$built/lockhouse" generate man "$stage/man" >/dev/null
"$built/lockhouse" generate completions "$stage/completions" >/dev/null
"$built/lockhouse" generate skill "$stage" >/dev/null

# A version with other commands has other manual pages, so the files of the installed version are removed first.
if [ -f "$list" ]; then
    uninstall >/dev/null
fi
install_file 755 "$built/lockhouse" bin/lockhouse
install_file 755 "$built/lockhouse-worker" lib/lockhouse/lockhouse-worker
install_file 644 "$built/liblockhouse_python.so" lib/lockhouse/liblockhouse_python.so
for page in "$stage"/man/*.1; do
    install_file 644 "$page" "share/man/man1/${page##*/}"
done
install_file 644 "$stage/completions/lockhouse.bash" share/bash-completion/completions/lockhouse
install_file 644 "$stage/completions/_lockhouse" share/zsh/site-functions/_lockhouse
install_file 644 "$stage/completions/lockhouse.fish" share/fish/vendor_completions.d/lockhouse.fish
install_file 644 "$stage/SKILL.md" share/lockhouse/skills/lockhouse/SKILL.md
install -D -m 644 "$stage/installed-files" "$list"
echo "installed to $prefix; try: $prefix/bin/lockhouse doctor"
echo "installed files: $list; to remove them: make uninstall PREFIX=$prefix"
