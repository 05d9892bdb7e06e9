use std::os::unix::fs::symlink;

use super::super::file_system::{list, open_file, stat};
use super::super::new_file::{NewFile, describe_existing};
use super::*;

/// A folder with Lockhouse's own files, and with others.
fn files() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a directory");
    let root = folder.path().canonicalize().expect("a path");
    for name in ["data/audit/day", "data/venv/lib", "links", "data/free"] {
        std::fs::create_dir_all(root.join(name)).expect("a directory");
    }
    for name in ["data/config.toml", "data/a.csv", "data/audit/day/1.jsonl", "data/venv/lib/x.py"] {
        std::fs::write(root.join(name), name).expect("a file");
    }
    (folder, root)
}

fn places(root: &Path) -> ReservedPlaces {
    let own = OwnPlaces {
        files: ["data/config.toml", "data/policy.toml", "links/servers.json"]
            .map(|name| root.join(name))
            .into(),
        folders: [root.join("data/audit")].into(),
        code: [root.join("data/venv")].into(),
        server_programs: [root.join("data/server.py")].into(),
    };
    ReservedPlaces::look_up(own.into())
}

/// Whether a file can be read, and written.
fn permitted(root: &Path, name: &str) -> (bool, bool) {
    let (path, places) = (root.join(name), places(root));
    let read = open_file(&path, 99, &places);
    let replaces = describe_existing(&path, &places);
    let written = NewFile::create(&path, replaces.as_deref(), &places);
    for error in [read.as_ref().err(), written.as_ref().err()].into_iter().flatten() {
        let is_expected = matches!(error, FileError::Reserved | FileError::NotFound | FileError::HardLinked);
        assert!(is_expected, "{name}: {error}");
    }
    (read.is_ok(), written.is_ok())
}

#[test]
fn own_files_are_refused_and_the_files_beside_them_are_not() {
    let (_folder, root) = files();
    symlink(root.join("data/a.csv"), root.join("links/servers.json")).expect("a link");
    for (name, expected) in [
        ("data/config.toml", (false, false)),
        ("data/config.toml.lockhouse-backup-1", (false, false)),
        ("data/.config.toml.4711", (false, false)),
        ("data/policy.toml", (false, false)),
        ("data/audit/day/1.jsonl", (false, false)),
        ("data/audit/new", (false, false)),
        ("data/venv/lib/x.py", (false, false)),
        ("data/server.py", (false, false)),
        // The target of a link that is named.
        ("data/a.csv", (false, false)),
        ("data/config.toml.txt", (false, true)),
        ("data/free/config.toml", (false, true)),
        ("data/free/new", (false, true)),
    ] {
        assert_eq!(permitted(&root, name), expected, "{name}");
    }
    std::fs::remove_file(root.join("links/servers.json")).expect("removed");
    assert_eq!(permitted(&root, "data/a.csv"), (true, true), "control");
    // A link to a file that does not exist, by another link.
    symlink(root.join("links/second"), root.join("links/servers.json")).expect("a link");
    symlink("../data/later.json", root.join("links/second")).expect("a link");
    assert_eq!(permitted(&root, "data/later.json"), (false, false));
}

#[test]
fn a_replaced_file_and_a_folder_with_another_name_are_recognized() {
    let (_folder, root) = files();
    // As Lockhouse replaces its files: the inode is another one.
    std::fs::write(root.join("data/draft"), "new").expect("a file");
    std::fs::rename(root.join("data/draft"), root.join("data/config.toml")).expect("renamed");
    assert_eq!(permitted(&root, "data/config.toml"), (false, false));
    // The configuration names the folder by a link, and the call by its own name.
    symlink(root.join("data"), root.join("by-link")).expect("a link");
    let own = OwnPlaces { files: [root.join("by-link/config.toml")].into(), ..OwnPlaces::default() };
    let places = ReservedPlaces::look_up(own.into());
    assert!(matches!(open_file(&root.join("data/config.toml"), 99, &places), Err(FileError::Reserved)));
    assert!(open_file(&root.join("data/a.csv"), 99, &places).is_ok());
}

#[test]
fn hard_links_to_own_files_are_refused_and_other_hard_links_are_not() {
    let (_folder, root) = files();
    let link = |from: &str, to: &str| std::fs::hard_link(root.join(from), root.join(to)).expect("a link");
    link("data/a.csv", "data/free/other");
    // No file with other names is replaced, whoever owns it.
    assert_eq!(permitted(&root, "data/free/other"), (true, false));
    link("data/config.toml", "data/free/config");
    link("data/audit/day/1.jsonl", "data/free/record");
    link("data/venv/lib/x.py", "data/free/x.py");
    for name in ["data/free/config", "data/free/record"] {
        assert_eq!(permitted(&root, name), (false, false), "{name}");
    }
    assert_eq!(permitted(&root, "data/free/x.py"), (true, false), "code is no secret");
    // A replaced file has another inode, and the former one is an ordinary file.
    std::fs::write(root.join("data/draft"), "new").expect("a file");
    std::fs::rename(root.join("data/draft"), root.join("data/config.toml")).expect("renamed");
    link("data/config.toml", "data/free/later");
    assert_eq!(permitted(&root, "data/free/later"), (false, false));
}

#[test]
fn own_files_are_neither_listed_nor_described() {
    let (_folder, root) = files();
    std::fs::hard_link(root.join("data/config.toml"), root.join("data/linked")).expect("a link");
    let places = places(&root);
    let (entries, _) = list(&root.join("data"), 99, &places, |_, _| true, |_| None).expect("a list");
    assert_eq!(entries.into_iter().map(|entry| entry.name).collect::<Vec<_>>(), ["a.csv", "free"]);
    for name in ["data/audit", "data/audit/day", "data/config.toml", "data/linked"] {
        assert!(matches!(stat(&root.join(name), &places), Err(FileError::Reserved)), "{name}");
        let listed = list(&root.join(name), 99, &places, |_, _| true, |_| None);
        assert!(matches!(listed, Err(FileError::Reserved | FileError::NotFolder)), "{name}");
    }
    assert!(stat(&root.join("data/a.csv"), &places).is_ok());
}

#[test]
fn files_of_the_kernel_are_refused() {
    let places = ReservedPlaces::look_up(Arc::default());
    for path in ["/proc/self/environ", "/sys/kernel/mm/transparent_hugepage/enabled"] {
        assert!(matches!(stat(Path::new(path), &places), Err(FileError::Reserved)), "{path}");
    }
}
