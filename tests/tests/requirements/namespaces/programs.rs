//! Programs of the user: copies of Lockhouse, and a library that is loaded into it.

use std::path::PathBuf;
use std::process::Command;

use lockhouse_tests::{CommandOutput, Lockhouse};

/// A copy of the program.
pub(super) fn copy(lockhouse: &Lockhouse) -> Option<PathBuf> {
    let path = lockhouse.path("home/copy");
    std::fs::copy(lockhouse.program(), &path).unwrap();
    Some(path)
}

/// A copy of the program that looks for requirements elsewhere.
pub(super) fn patched_copy(lockhouse: &Lockhouse) -> Option<PathBuf> {
    let path = copy(lockhouse)?;
    let mut editor = Command::new("sed");
    let edits = "s#/etc/lockhouse/requirements.toml#/etc/lockhouse/requirements.none#g; s#/var/lib/lockhouse-managed#/var/lib/lockhouse-nothing#g";
    let edited = CommandOutput::run(editor.env("LC_ALL", "C").args(["-i", edits]).arg(&path), b"");
    assert_eq!(edited.status, Some(0), "{edited:?}");
    Some(path)
}

/// The program itself, and a library that hides the two files from it.
pub(super) fn preloaded(lockhouse: &Lockhouse) -> Option<PathBuf> {
    const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
static const char *seen(const char *path) {
    int hidden = path && (strstr(path, "lockhouse-managed") || strstr(path, "/etc/lockhouse"));
    return hidden ? "/nonexistent/file" : path;
}
int statx(int from, const char *restrict path, int flags, unsigned mask, struct statx *restrict found) {
    int (*real)(int, const char *, int, unsigned, struct statx *) = dlsym(RTLD_NEXT, "statx");
    return real(from, seen(path), flags, mask, found);
}
int open64(const char *path, int flags, ...) {
    int (*real)(const char *, int, int) = dlsym(RTLD_NEXT, "open64");
    return real(seen(path), flags, 0600);
}
"#;
    let (source, library) = (lockhouse.file("hides.c", SOURCE), lockhouse.path("hides.so"));
    let mut compiler = Command::new("cc");
    let compiled = compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source);
    let compiled = CommandOutput::run(compiled, b"");
    assert_eq!(compiled.status, Some(0), "{compiled:?}");
    None
}
