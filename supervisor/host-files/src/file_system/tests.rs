use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Arc;

use super::super::new_file::{NewFile, describe_existing};
use super::*;

/// Looks up no reserved places.
fn none() -> ReservedPlaces {
    ReservedPlaces::look_up(Arc::default())
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().canonicalize().expect("a path");
    (folder, path)
}

#[test]
fn only_regular_files_within_the_limit_are_opened() {
    let (_folder, root) = folder();
    std::fs::write(root.join("a"), "abc").expect("a file");
    std::fs::create_dir(root.join("d")).expect("a directory");
    symlink("a", root.join("l")).expect("a link");
    nix::unistd::mkfifo(&root.join("p"), Mode::S_IRUSR).expect("a pipe");
    let _socket = std::os::unix::net::UnixListener::bind(root.join("s")).expect("a socket");
    let error = |path: &Path| open_file(path, 3, &none()).expect_err("an error").to_string();
    let (mut file, bytes) = open_file(&root.join("a"), 3, &none()).expect("a file");
    let mut text = String::new();
    file.read_to_string(&mut text).expect("text");
    assert_eq!((text.as_str(), bytes), ("abc", 3));
    assert_eq!(error(&root.join("d")), "it is a folder");
    assert_eq!(error(&root.join("none")), "there is no such file or folder");
    assert_eq!(error(&root.join("a/b")), "it is not a folder");
    for name in ["l", "p", "s"] {
        assert_eq!(error(&root.join(name)), "it is not a regular file", "{name}");
    }
    assert_eq!(error(Path::new("/dev/null")), "it is not a regular file");
    std::fs::write(root.join("a"), "abcd").expect("a file");
    assert!(error(&root.join("a")).starts_with("it has 4 bytes, and the limit is 3"));
}

#[test]
fn a_link_in_the_path_is_not_followed() {
    let (_folder, root) = folder();
    std::fs::create_dir(root.join("d")).expect("a directory");
    std::fs::write(root.join("d/a"), "abc").expect("a file");
    symlink("d", root.join("l")).expect("a link");
    assert!(open_file(&root.join("d/a"), 9, &none()).is_ok());
    assert!(matches!(open_file(&root.join("l/a"), 9, &none()), Err(FileError::Changed)));
    assert!(matches!(stat(&root.join("l/a"), &none()), Err(FileError::Changed)));
    assert!(matches!(list(&root.join("l"), 9, &none(), |_, _| true, |_| None), Err(FileError::Changed)));
    assert!(matches!(NewFile::create(&root.join("l/b"), None, &none()), Err(FileError::Changed)));
    assert!(matches!(NewFile::create(&root.join("l"), None, &none()), Err(FileError::NotRegular)));
}

#[test]
fn a_folder_is_listed_with_the_links_that_may_be_followed_and_up_to_a_limit() {
    let (_folder, root) = folder();
    for name in ["b", "a", "c"] {
        std::fs::write(root.join(name), name).expect("a file");
    }
    symlink("a", root.join("l")).expect("a link");
    symlink("b", root.join("m")).expect("a link");
    let follow = |name: &str| {
        let facts = stat(&root.join("a"), &none()).expect("facts");
        (name == "l").then(|| ("/target".to_owned(), facts))
    };
    let names = |most| {
        let (entries, is_cut) = list(&root, most, &none(), |name, _| name != "c", follow).expect("a list");
        (entries.into_iter().map(|entry| (entry.name, entry.target)).collect::<Vec<_>>(), is_cut)
    };
    let target = Some("/target".to_owned());
    let all = vec![("a".to_owned(), None), ("b".to_owned(), None), ("l".to_owned(), target)];
    assert_eq!(names(9), (all, false));
    assert!(names(1).1);
    let facts = stat(&root.join("a"), &none()).expect("facts");
    assert_eq!((facts.is_folder, facts.bytes), (false, 1));
}

#[test]
fn a_new_file_appears_whole_or_not_at_all() {
    let (_folder, root) = folder();
    let path = root.join("a");
    let mut new = NewFile::create(&path, None, &none()).expect("a file");
    new.write(b"abc").expect("written");
    assert!(!path.exists());
    drop(new);
    assert_eq!(std::fs::read_dir(&root).expect("a directory").count(), 0);
    std::fs::write(&path, "old").expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("a mode");
    let old = describe_existing(&path, &none());
    let mut new = NewFile::create(&path, old.as_deref(), &none()).expect("a file");
    new.write(b"new").expect("written");
    new.finish().expect("finished");
    assert_eq!(std::fs::read(&path).expect("a file"), b"new");
    assert_eq!(path.metadata().expect("facts").permissions().mode() & 0o777, 0o640);
}

#[test]
fn a_link_that_is_put_in_the_place_of_a_folder_never_leads_elsewhere() {
    let (_folder, root) = folder();
    for (name, text) in [("in", "inside"), ("out", "outside")] {
        std::fs::create_dir(root.join(name)).expect("a directory");
        std::fs::write(root.join(name).join("a"), text).expect("a file");
    }
    symlink("out", root.join("link")).expect("a link");
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
            let (one, other) = (root.join("in"), root.join("link"));
            while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                let exchanged = renameat2(AT_FDCWD, &one, AT_FDCWD, &other, RenameFlags::RENAME_EXCHANGE);
                exchanged.expect("exchanged");
            }
        });
        let (mut inside, mut refused) = (0, 0);
        while (inside == 0 || refused == 0) || inside + refused < 2_000 {
            match open_file(&root.join("in/a"), 99, &none()) {
                Ok((mut file, _)) => {
                    let mut text = String::new();
                    file.read_to_string(&mut text).expect("text");
                    assert_eq!(text, "inside");
                    inside += 1;
                }
                Err(error) => {
                    assert!(matches!(error, FileError::Changed | FileError::NotFolder), "{error}");
                    refused += 1;
                }
            }
        }
        is_done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
