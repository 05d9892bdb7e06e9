use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use super::*;

fn set(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
}

/// A directory with `a/file`, and `b` for links, without links on its own path.
fn directory() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().canonicalize().expect("a path");
    for name in ["a", "b"] {
        std::fs::create_dir(root.join(name)).expect("a directory");
    }
    std::fs::write(root.join("a/file"), "").expect("a file");
    (directory, root)
}

fn fault(path: &Path) -> Option<String> {
    check_path(path, &TrustedOwners::root_and_own(), Strictness::Usual).err().map(|error| error.to_string())
}

#[test]
fn each_part_of_a_path_and_each_link_counts() {
    let (_directory, root) = directory();
    let (file, link, second) = (root.join("a/file"), root.join("b/link"), root.join("second"));
    symlink("../a/file", &link).expect("a link");
    symlink(&link, &second).expect("a link");
    for path in [&file, &link, &second, &root.join("a/none"), &root.join("none/below")] {
        assert_eq!(fault(path), None, "{}", path.display());
    }
    set(&file, 0o646);
    for path in [&file, &link, &second] {
        let expected =
            format!("{} can be written by others (everybody on this machine, mode 0646)", file.display());
        assert_eq!(fault(path), Some(expected));
    }
    set(&file, 0o644);
    // Whoever can change a link in the middle chooses the file.
    set(&root.join("b"), 0o777);
    assert_eq!(fault(&file), None);
    assert!(fault(&link).is_some() && fault(&second).is_some());
    set(&root.join("b"), 0o1777);
    assert_eq!(fault(&second), None, "a sticky directory");
    symlink("loop", root.join("loop")).expect("a link");
    assert!(fault(&root.join("loop")).is_some_and(|fault| fault.ends_with("is a symbolic link")));
    let refused = check_path(&second, &TrustedOwners::root_and_own(), Strictness::Strict);
    assert!(matches!(refused, Err(UntrustedPath { fault: Fault::Link, .. })));
}

#[test]
fn another_owner_is_not_trusted_unless_it_is_named() {
    if !geteuid().is_root() {
        return;
    }
    let (_directory, root) = directory();
    let (file, link) = (root.join("a/file"), root.join("b/link"));
    symlink(&file, &link).expect("a link");
    let own = |path: &Path| std::os::unix::fs::lchown(path, Some(4_242), None).expect("an owner");
    let named = TrustedOwners::root().with(Uid::from_raw(4_242));
    for (part, paths) in [(&file, [&file, &link]), (&link, [&link, &link]), (&root.join("b"), [&link, &link])]
    {
        own(part);
        for path in paths {
            assert_eq!(fault(path), Some(format!("{} belongs to 4242", part.display())));
            assert!(check_path(path, &named, Strictness::Usual).is_ok());
        }
        std::os::unix::fs::lchown(part, Some(0), None).expect("an owner");
    }
    assert_eq!(fault(&link), None, "control");
}

#[test]
fn an_entry_of_an_access_control_list_counts() {
    let (_directory, root) = directory();
    let file = root.join("a/file");
    let list = |entry: &str| Command::new("setfacl").args(["-m", entry]).arg(&file).status();
    // Without setfacl or access control lists, there is nothing to test.
    if !list("user:4242:r").is_ok_and(|status| status.success()) {
        return;
    }
    assert_eq!(fault(&file), None, "control: it can only be read");
    let found = std::fs::metadata(&file).expect("a file");
    let readers =
        others_with(&file, &found, Permission::Read, &TrustedOwners::root_and_own(), Strictness::Usual);
    set(&file, 0o640);
    assert!(readers.expect("readable").is_some());
    for (entry, who) in [("user:4242:rw", "4242"), ("group:4242:rw", "group 4242")] {
        list(entry).expect("a list");
        let listed = entry.trim_end_matches(":rw");
        let error =
            check_path(&file, &TrustedOwners::root_and_own(), Strictness::Usual).expect_err("refused");
        assert!(matches!(&error.fault, Fault::Listed { entry, .. } if entry == listed), "{error}");
        assert!(error.to_string().contains(&format!("({who}, by its access control list)")), "{error}");
        Command::new("setfacl").args(["-x", listed]).arg(&file).status().expect("removed");
        assert_eq!(fault(&file), None, "{entry}");
    }
    // The mode of the group limits the list.
    list("user:4242:rw").expect("a list");
    set(&file, 0o600);
    assert_eq!(fault(&file), None);
}

#[test]
fn a_group_of_ones_own_is_not_others() {
    let owner = User::from_uid(Uid::effective()).ok().flatten().expect("a user");
    let own = Group::from_name(&owner.name).ok().flatten();
    // Containers run other accounts in the group of root.
    if let Some(own) = own.filter(|own| own.mem.is_empty()) {
        assert_eq!(is_private(own.gid.as_raw(), owner.uid.as_raw()), !owner.uid.is_root());
    }
    let private = std::fs::read_to_string("/etc/passwd").expect("accounts");
    let other = private.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, uid, gid) = (fields.next()?, fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        let group = Group::from_gid(Gid::from_raw(gid)).ok().flatten()?;
        (uid != 0 && gid != 0 && group.name == name && group.mem.is_empty()).then_some((uid, gid, name))
    });
    if let Some((uid, gid, name)) = other {
        let is_shared = is_group_of_others(Gid::from_raw(gid), name);
        assert_eq!(is_private(gid, uid), !is_shared, "{name}");
    }
    assert!(is_group_of_others(Gid::from_raw(0), "nobody"), "root is in it");
    assert!(!is_private(4_000_000_000, owner.uid.as_raw()));
    assert!(is_private(4_000_000_000, 4_000_000_000) && !is_private(4_000_000_000, 4_000_000_001));
}
