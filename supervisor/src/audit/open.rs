//! Files of the log, opened for reading: regular files only, so that a link or a pipe in their place is an error.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Opens a file that must be a regular one.
///
/// # Errors
/// That of the system; [`io::ErrorKind::InvalidInput`] for a symbolic link, a directory, a pipe or a device.
pub(super) fn regular(path: &Path) -> io::Result<File> {
    // Without O_NONBLOCK a pipe would be waited for.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => return Err(no_file("a symbolic link")),
        opened => opened?,
    };
    if !file.metadata()?.is_file() {
        return Err(no_file("not a regular file"));
    }
    Ok(file)
}

/// Whether something else than a regular file is in its place.
pub(super) fn is_no_file(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidInput
}

fn no_file(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, which Lockhouse does not follow"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_directories_and_pipes_are_refused_and_a_file_is_opened() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("file"), "x").expect("a file");
        std::os::unix::fs::symlink(path("file"), path("link")).expect("a link");
        nix::unistd::mkfifo(&path("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        assert!(regular(&path("file")).is_ok());
        for name in ["link", "pipe", "."] {
            let error = regular(&path(name)).expect_err(name);
            assert!(is_no_file(&error), "{name}: {error}");
        }
        let missing = regular(&path("none")).expect_err("there is none");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
