//! Reads and writes Lockhouse's own files. They are readable for their owner only, are replaced atomically, and are not
//! opened through a symbolic link.

mod file_version;

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::unistd::geteuid;

pub use file_version::FileVersion;

use crate::path_trust::{Fault, Strictness, TrustedOwners, account_name, check_path};

/// Replaces the file with `content` atomically. If several processes do so at the same time, the content of one of them
/// remains. The file may be empty after a power loss, so this function is only for data that can be fetched again.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    replace_with(path, content, |_| Ok(()))
}

/// Replaces the file atomically. Syncs the new content to disk first, so that the file has its old or its new content
/// after a power loss. Blocks until the disk has written the content.
pub fn replace_durably(path: &Path, content: &[u8]) -> io::Result<()> {
    replace_with(path, content, File::sync_all)
}

/// Replaces a file durably with one of the same owner and mode.
///
/// # Errors
/// There is no such file, or it cannot be replaced.
pub fn replace_content(path: &Path, content: &[u8]) -> io::Result<()> {
    let old = std::fs::metadata(path)?;
    replace_with(path, content, |file| {
        std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid()))?;
        file.set_permissions(old.permissions())?;
        file.sync_all()
    })
}

/// Replaces the file atomically and syncs it to disk, for a service that may run as another user: if root writes the
/// file, the owner of the file's directory becomes the owner of the file.
pub fn replace_for_service(path: &Path, content: &[u8]) -> io::Result<()> {
    replace_with(path, content, |file| give_to_owner_of_directory(file, path).and_then(|()| file.sync_all()))
}

/// Removes a file, if there is one.
///
/// # Errors
/// The file cannot be removed.
pub fn remove_if_present(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes a directory with everything in it. Returns whether there was one.
///
/// # Errors
/// It cannot be removed.
pub fn remove_directory(path: &Path) -> io::Result<bool> {
    match std::fs::remove_dir_all(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Changes the owner of a file that root has created at `path` to the owner of the file's directory, who must be able
/// to read and change the file. Does nothing if the current user is not root or root owns the directory.
///
/// # Errors
/// If anybody but root could have led the path of the directory elsewhere: the file could be in any directory of the
/// machine.
pub fn give_to_owner_of_directory(file: &File, path: &Path) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    check_way(directory)?;
    let found = std::fs::symlink_metadata(directory)?;
    if !geteuid().is_root() || found.uid() == 0 {
        return Ok(());
    }
    if found.is_symlink() || file.metadata()?.uid() != 0 {
        return Err(is_led_by(found.uid()));
    }
    std::os::unix::fs::fchown(file, Some(found.uid()), Some(found.gid()))
}

/// Checks that nobody else can lead root to another directory when it writes into this one. The directory itself may
/// belong to another account, such as that of a service, which may then change what root writes in it. Checks nothing if
/// this process is not root.
///
/// # Errors
/// An error that names the account which can change a part of the path.
pub fn check_way(directory: &Path) -> io::Result<()> {
    let directory = std::path::absolute(directory)?;
    let Some(above) = directory.parent().filter(|_| geteuid().is_root()) else { return Ok(()) };
    if let Err(untrusted) = check_path(above, &TrustedOwners::of_written_files(), Strictness::Usual) {
        return Err(match untrusted.fault {
            Fault::Owner(owner) => is_led_by(owner),
            _ => io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("{untrusted}, who could lead root to another directory: change that first"),
            ),
        });
    }
    match std::fs::symlink_metadata(&directory) {
        Ok(found) if found.is_symlink() && found.uid() != 0 => Err(is_led_by(found.uid())),
        _ => Ok(()),
    }
}

fn is_led_by(account: u32) -> io::Error {
    let name = account_name(account);
    let reason =
        format!("root writes nothing in a directory to which {name} can lead it: run this command as {name}");
    io::Error::new(io::ErrorKind::PermissionDenied, reason)
}

/// Opens a directory.
///
/// # Errors
/// If the path is a symbolic link or no directory.
pub fn open_directory(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW).open(path)
}

fn replace_with(path: &Path, content: &[u8], finish: impl Fn(&File) -> io::Result<()>) -> io::Result<()> {
    write_via_temporary(path, content, finish, |temporary| std::fs::rename(temporary, path))
}

/// Creates a file with `content` and syncs it to disk, unless the file exists. Returns the content of the file. If
/// several processes do so at the same time, all of them return the same content.
pub fn create_durably(path: &Path, content: &[u8]) -> io::Result<Vec<u8>> {
    // Unlike a rename, a hard link never replaces an existing file.
    let finish = |file: &File| give_to_owner_of_directory(file, path).and_then(|()| file.sync_all());
    match write_via_temporary(path, content, finish, |temporary| std::fs::hard_link(temporary, path)) {
        Ok(()) => {
            let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
            File::open(directory)?.sync_all().map(|()| content.to_vec())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let mut found = Vec::new();
            open_to_read(path)?.read_to_end(&mut found).map(|_| found)
        }
        Err(error) => Err(error),
    }
}

/// Writes the content into a temporary file beside `path`, lets `finish` prepare the open file (for example sync it to
/// disk), and lets `publish` rename or link the temporary file to `path`. Removes the temporary file in the end.
fn write_via_temporary(
    path: &Path,
    content: &[u8],
    finish: impl Fn(&File) -> io::Result<()>,
    publish: impl Fn(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    create_private_directory(directory)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let temporary = directory.join(format!(".{name}.{}", uuid::Uuid::now_v7().simple()));
    let result = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut file| file.write_all(content).and_then(|()| finish(&file)))
        .and_then(|()| publish(&temporary));
    let _ = std::fs::remove_file(&temporary);
    result
}

/// Creates a directory and its missing parents with mode 0700.
///
/// # Errors
/// If the directory cannot be created, or if this process is root and another account can lead it: see [`check_way`].
pub fn create_private_directory(path: &Path) -> io::Result<()> {
    check_way(path)?;
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Opens a file to read it and to append to it. Creates the file with mode 0600 if it does not exist.
///
/// # Errors
///
/// If the path is a symbolic link or no regular file: see [`open_regular_file`]. If this process is root and another
/// account can lead it: see [`check_way`].
pub fn open_to_append(path: &Path) -> io::Result<File> {
    check_way(path.parent().ok_or(io::ErrorKind::InvalidInput)?)?;
    open_regular_file(OpenOptions::new().create(true).read(true).append(true).mode(0o600), path)
}

/// Opens a file to read it.
///
/// # Errors
///
/// If the path is a symbolic link or no regular file: see [`open_regular_file`].
pub fn open_to_read(path: &Path) -> io::Result<File> {
    open_regular_file(OpenOptions::new().read(true), path)
}

/// Opens a regular file. Returns an error, and does not block, if the path is a symbolic link, a pipe or another kind
/// of file. Another user who may write to the directory could have put such a file there: for example, the user of a
/// service, when root runs a command for that service.
pub fn open_regular_file(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let opened = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => {
            io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link, which is not followed")
        }
        _ => error,
    })?;
    require_regular_file(file)
}

fn require_regular_file(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// Whether this error of [`open_regular_file`] means that the path is a symbolic link or not a regular file.
pub fn is_not_regular_file(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidInput
}

/// Reads a UTF-8 text file. Returns `None` if the file does not exist, and an error if it has more than `bytes_max`
/// bytes.
pub fn read_bounded(path: &Path, bytes_max: u64) -> io::Result<Option<String>> {
    read_bytes_bounded(path, bytes_max)?.map(into_utf8).transpose()
}

/// Reads a UTF-8 text file whose path a user gave, and which may be a symbolic link. Returns `None` if the file does
/// not exist, and an error, without blocking, if it has more than `bytes_max` bytes or is a pipe or another kind of file.
pub fn read_following_links(path: &Path, bytes_max: u64) -> io::Result<Option<String>> {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    read_file_bounded(opened.and_then(require_regular_file), bytes_max)?.map(into_utf8).transpose()
}

/// Reads a binary file. Returns `None` if the file does not exist, and an error if it has more than `bytes_max` bytes.
pub fn read_bytes_bounded(path: &Path, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    read_file_bounded(open_to_read(path), bytes_max)
}

fn into_utf8(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

fn read_file_bounded(opened: io::Result<File>, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut content = Vec::new();
    let bytes = file.take(bytes_max + 1).read_to_end(&mut content)?;
    if bytes as u64 > bytes_max {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {bytes_max} bytes"),
        ));
    }
    Ok(Some(content))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_made_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("below/file");
        for content in ["one", "another"] {
            assert_eq!(create_durably(&path, content.as_bytes()).expect("a file"), b"one");
        }
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(path.parent().expect("one")).expect("readable").count(), 1);
    }

    #[test]
    fn root_gives_a_file_only_to_the_owner_of_a_directory_that_only_root_can_replace() {
        use std::os::unix::fs::{lchown, symlink};
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().canonicalize().expect("a path").join(name);
        std::fs::create_dir_all(path("service/below")).expect("a directory");
        std::fs::create_dir(path("victim")).expect("a directory");
        symlink(path("victim"), path("link")).expect("a link");
        for name in ["service", "service/below", "link"] {
            lchown(path(name), Some(4_242), None).expect("an owner");
        }
        for (name, given) in [
            ("service/file", true),
            ("service/below/file", false),
            ("link/file", false),
            ("victim/own", true),
        ] {
            let file = File::create(path(name)).expect("a file");
            assert_eq!(give_to_owner_of_directory(&file, &path(name)).is_ok(), given, "{name}");
        }
        let owner = |name: &str| std::fs::metadata(path(name)).expect("a file").uid();
        let owners = ["service/file", "service/below/file", "link/file", "victim/own"].map(owner);
        assert_eq!(owners, [4_242, 0, 0, 0]);
    }

    #[test]
    fn root_writes_nothing_where_another_account_can_lead_it() {
        use std::os::unix::fs::{lchown, symlink};
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().canonicalize().expect("a path").join(name);
        std::fs::create_dir_all(path("victim/below")).expect("a directory");
        std::fs::create_dir_all(path("service/own")).expect("a directory");
        symlink(path("victim"), path("service/link")).expect("a link");
        symlink(path("victim"), path("link")).expect("a link");
        for name in ["service", "service/link", "link"] {
            lchown(path(name), Some(4_242), None).expect("an owner");
        }
        for (name, is_written) in [
            ("service/file", true),
            ("service/link/file", false),
            ("service/link/below/file", false),
            ("service/own/file", false),
            ("link/file", false),
            ("link/below/file", false),
            ("victim/below/file", true),
        ] {
            let results = [
                replace(&path(name), b"").is_ok(),
                open_to_append(&path(name)).is_ok(),
                create_durably(&path(&format!("{name}-2")), b"").is_ok(),
            ];
            assert_eq!(results, [is_written; 3], "{name}");
        }
        assert_eq!(std::fs::read_dir(path("victim")).expect("readable").count(), 1);
    }

    #[test]
    fn nothing_is_read_or_written_through_a_link_or_a_pipe() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("victim"), "secret").expect("a file");
        std::os::unix::fs::symlink(path("victim"), path("link")).expect("a link");
        std::os::unix::fs::symlink(path("none"), path("dangling")).expect("a link");
        nix::unistd::mkfifo(&path("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        for name in ["link", "dangling", "pipe"] {
            assert!(open_to_append(&path(name)).is_err(), "{name}");
            assert!(open_to_read(&path(name)).is_err(), "{name}");
            assert!(read_bounded(&path(name), 100).is_err(), "{name}");
        }
        assert!(!path("none").exists());
        open_to_append(&path("new")).and_then(|mut file| file.write_all(b"own")).expect("written");
        assert_eq!(read_bounded(&path("new"), 100).expect("readable").as_deref(), Some("own"));
        assert_eq!(read_following_links(&path("link"), 100).expect("readable").as_deref(), Some("secret"));
        assert!(read_following_links(&path("pipe"), 100).is_err());
    }

    #[test]
    fn a_file_is_replaced_whole_and_private() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("below/file");
        for content in ["one", "another"] {
            replace(&path, content.as_bytes()).expect("a file");
            assert_eq!(read_bounded(&path, 100).expect("readable").as_deref(), Some(content));
        }
        let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().expect("one"))), (0o600, 0o700));
        assert_eq!(std::fs::read_dir(path.parent().expect("one")).expect("readable").count(), 1);
        assert!(read_bounded(&path, 3).is_err());
        assert!(read_bounded(&directory.path().join("none"), 3).expect("no error").is_none());
    }
}
