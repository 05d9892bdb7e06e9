use std::io::Read;
use std::os::unix::fs::PermissionsExt;

use super::*;

const LIMITS: ResultFileLimits = ResultFileLimits { bytes: 400, lifetime: Duration::from_secs(60) };

fn text(file: Option<(StoredFile, File)>) -> Option<String> {
    let (_, mut file) = file?;
    let mut text = String::new();
    file.read_to_string(&mut text).expect("text");
    Some(text)
}

#[test]
fn a_file_of_a_client_is_private_and_ends_with_the_process() {
    let state = tempfile::tempdir().expect("a directory");
    let files = ResultFiles::of_process(Some(state.path().to_owned()), LIMITS);
    let (one, other) = (Owner::of_connection(1), Owner::of_connection(2));
    let stored = files.store(one, "a/b.csv", "text/csv".into(), b"1,2").expect("stored");
    assert_eq!((stored.name.as_str(), stored.bytes), ("a_b.csv", 3));
    assert_eq!(text(files.open(one, &stored.handle)).as_deref(), Some("1,2"));
    let located =
        files.locate_for_operator(&stored.handle).map(|(_, path)| std::fs::read(path).expect("a file"));
    assert_eq!(located.as_deref(), Some(&b"1,2"[..]));
    assert_eq!(text(files.open_for_operator(&stored.handle)).as_deref(), Some("1,2"));
    assert!(files.open(other, &stored.handle).is_none());
    let directory = std::fs::read_dir(state.path().join("files")).expect("a directory").next();
    let directory = directory.expect("a directory").expect("a directory").path();
    let mode = |path: &std::path::Path| path.metadata().expect("facts").permissions().mode() & 0o777;
    let content = directory.join(format!("{}.content", stored.handle));
    assert_eq!((mode(&directory), mode(&content)), (0o700, 0o600));
    let another = ResultFiles::of_process(Some(state.path().to_owned()), LIMITS);
    another.store(one, "c", "a/b".into(), b"1").expect("stored");
    assert!(content.exists(), "the directory of a process that lives");
    drop(files);
    assert!(!directory.exists());
}

#[test]
fn the_directory_of_a_process_that_was_killed_is_removed() {
    let state = tempfile::tempdir().expect("a directory");
    let left = state.path().join("files/process-0");
    std::fs::create_dir_all(&left).expect("a directory");
    std::fs::write(left.join("a.content"), "x").expect("a file");
    let files = ResultFiles::of_process(Some(state.path().to_owned()), LIMITS);
    files.store(Owner::LOCAL, "c", "a/b".into(), b"1").expect("stored");
    assert!(!left.exists());
}

#[test]
fn files_of_commands_are_found_by_later_commands() {
    let state = tempfile::tempdir().expect("a directory");
    let open = || ResultFiles::of_commands(Some(state.path().to_owned()), LIMITS);
    let stored = open().store(Owner::LOCAL, "a.csv", "text/csv".into(), b"1,2").expect("stored");
    let later = open();
    assert_eq!(later.with_prefix(&stored.handle.as_str()[..4]), std::slice::from_ref(&stored));
    assert_eq!(text(later.open(Owner::LOCAL, &stored.handle)).as_deref(), Some("1,2"));
    let path = state.path().join(format!("files/run/{}.content", stored.handle));
    let file = File::options().write(true).open(&path).expect("a file");
    file.set_modified(SystemTime::now() - LIMITS.lifetime).expect("a time");
    assert_eq!(open().usage(), (0, 0));
    assert!(!path.exists());
}

#[test]
fn a_file_that_is_too_large_leaves_nothing() {
    let state = tempfile::tempdir().expect("a directory");
    let files = ResultFiles::of_commands(Some(state.path().to_owned()), LIMITS);
    let mut writer = files.begin(Owner::LOCAL, "a", "a/b".into()).expect("a file");
    writer.write(&[0; 100]).expect("written");
    assert!(matches!(writer.write(&[0]), Err(StoreError::TooLarge { most: 100 })));
    drop(writer);
    assert_eq!(std::fs::read_dir(state.path().join("files/run")).expect("a directory").count(), 0);
    for _ in 0..5 {
        files.store(Owner::LOCAL, "a", "a/b".into(), &[0; 100]).expect("stored");
    }
    assert_eq!(files.usage(), (4, 400));
}

#[test]
fn nothing_is_stored_without_space_or_a_directory() {
    let off = ResultFileLimits { bytes: 0, ..LIMITS };
    let state = tempfile::tempdir().expect("a directory");
    let stores =
        [ResultFiles::of_process(Some(state.path().to_owned()), off), ResultFiles::of_process(None, LIMITS)];
    for files in stores {
        let stored = files.store(Owner::LOCAL, "a", "a/b".into(), b"1");
        assert!(matches!(stored, Err(StoreError::Off)));
    }
}
