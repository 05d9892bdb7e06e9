//! Files of our own: readable for their owner alone, and whole or not there at all.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Puts `content` in place of the file, in one step. Several processes may do so at the same time: one of them wins.
/// After a loss of power the file may be empty, so this is for what can be found out again.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    put(path, content, |_| Ok(()))
}

/// The same for what must be there after a loss of power, too. It may take the time of a disk.
pub fn replace_for_good(path: &Path, content: &[u8]) -> io::Result<()> {
    put(path, content, File::sync_all)
}

/// The same for what a service reads that runs as another user: what root writes for it belongs to whoever has the directory.
pub fn replace_for_service(path: &Path, content: &[u8]) -> io::Result<()> {
    put(path, content, |file| give_to_owner_of_directory(file, path).and_then(|()| file.sync_all()))
}

/// What root makes in the directory of another user belongs to that user, who must be able to go on with it.
pub fn give_to_owner_of_directory(file: &File, path: &Path) -> io::Result<()> {
    let directory = std::fs::metadata(path.parent().ok_or(io::ErrorKind::InvalidInput)?)?;
    if nix::unistd::geteuid().is_root() && directory.uid() != 0 {
        std::os::unix::fs::fchown(file, Some(directory.uid()), Some(directory.gid()))?;
    }
    Ok(())
}

fn put(path: &Path, content: &[u8], finish: impl Fn(&File) -> io::Result<()>) -> io::Result<()> {
    drafted(path, content, finish, |draft| std::fs::rename(draft, path))
}

/// Makes a file that must be there after a loss of power, if there is none yet: what is in it then. Several processes may
/// do so at the same time, and all of them get the same.
pub fn create_for_good(path: &Path, content: &[u8]) -> io::Result<Vec<u8>> {
    // Unlike a new name, a further one never takes the place of another file.
    let finish = |file: &File| give_to_owner_of_directory(file, path).and_then(|()| file.sync_all());
    match drafted(path, content, finish, |draft| std::fs::hard_link(draft, path)) {
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

/// Writes the content into a file beside `path`, from where it is put in its place. Nothing is left of that file.
fn drafted(
    path: &Path,
    content: &[u8],
    finish: impl Fn(&File) -> io::Result<()>,
    place: impl Fn(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    private_directory(directory)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let draft = directory.join(format!(".{name}.{}", uuid::Uuid::now_v7().simple()));
    let placed = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut file| file.write_all(content).and_then(|()| finish(&file)))
        .and_then(|()| place(&draft));
    let _ = std::fs::remove_file(&draft);
    placed
}

/// Makes a directory that only its owner can enter, with those above it.
pub fn private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Opens a file of our own to read and to append to it; it is made if there is none.
///
/// # Errors
/// Also where something else than a regular file has its name: see [`open_own`].
pub fn open_to_append(path: &Path) -> io::Result<File> {
    open_own(OpenOptions::new().create(true).read(true).append(true).mode(0o600), path)
}

/// Opens a file of our own to read it.
///
/// # Errors
/// Also where something else than a regular file has its name: see [`open_own`].
pub fn open_to_read(path: &Path) -> io::Result<File> {
    open_own(OpenOptions::new().read(true), path)
}

/// Follows no symbolic link, and waits for nobody at a pipe: another user who may write to the directory, as a service's own
/// does while root uses a command, could have put one there.
pub fn open_own(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let opened = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => {
            io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link, which is not followed")
        }
        _ => error,
    })?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// Whether [`open_own`] refused what has the name of a file, such as a link.
pub fn is_no_file(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidInput
}

/// The text of a file of our own, of at most `bytes_max`; `None` if there is none.
pub fn read_bounded(path: &Path, bytes_max: u64) -> io::Result<Option<String>> {
    read_bytes_bounded(path, bytes_max)?.map(text).transpose()
}

/// The same of a file that a person named, and that may be a link.
pub fn read_named(path: &Path, bytes_max: u64) -> io::Result<Option<String>> {
    read_opened(File::open(path), bytes_max)?.map(text).transpose()
}

/// The same of a file of our own that holds no text.
pub fn read_bytes_bounded(path: &Path, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    read_opened(open_to_read(path), bytes_max)
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

fn read_opened(opened: io::Result<File>, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
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
            assert_eq!(create_for_good(&path, content.as_bytes()).expect("a file"), b"one");
        }
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(path.parent().expect("one")).expect("readable").count(), 1);
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
        assert_eq!(read_named(&path("link"), 100).expect("readable").as_deref(), Some("secret"));
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
