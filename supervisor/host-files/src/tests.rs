use std::os::unix::fs::symlink;

use super::*;

fn files(root: &Path, read: &[&str], write: &[&str]) -> HostFiles {
    let pattern = |text: &&str| FilePattern::parse(&format!("{}{text}", root.display())).expect("a pattern");
    HostFiles::new(HostFileSettings {
        name: ServerName::new("files").expect("a name"),
        read: read.iter().map(pattern).collect(),
        write: write.iter().map(pattern).collect(),
        file_bytes: 100,
        home: Some(root.to_owned()),
        is_in_session: false,
        own: OwnPlaces { folders: [root.join("data/own")].into(), ..OwnPlaces::default() },
    })
}

#[test]
fn a_path_and_its_target_must_be_granted() {
    let folder = tempfile::tempdir().expect("a directory");
    let root = folder.path().canonicalize().expect("a path");
    for name in ["data/deep", "data/own", "other", "out"] {
        std::fs::create_dir_all(root.join(name)).expect("a directory");
    }
    for name in ["data/a.csv", "data/deep/b.csv", "data/c.txt", "data/own/k.csv", "other/d.csv"] {
        std::fs::write(root.join(name), name).expect("a file");
    }
    symlink(root.join("other/d.csv"), root.join("data/out.csv")).expect("a link");
    symlink(root.join("data/deep"), root.join("data/in")).expect("a link");
    symlink(root.join("data"), root.join("link")).expect("a link");
    symlink("nowhere", root.join("data/gone.csv")).expect("a link");
    let files = files(&root, &["/data/**/*.csv", "/link/*.csv"], &["/out"]);
    let resolved =
        |access, path: &str| match files.resolve(access, &path.replace('@', &root.display().to_string())) {
            Ok(path) => path.target.replace(&root.display().to_string(), "@"),
            Err(refusal) => format!("{refusal:?}").split([' ', '{']).next().unwrap_or_default().to_owned(),
        };
    let rows = [
        (Access::Read, "@/data/a.csv", "@/data/a.csv"),
        (Access::Read, "@/data", "NotGranted"),
        (Access::Browse, "@/data", "@/data"),
        (Access::Browse, "@/data/deep", "@/data/deep"),
        (Access::Browse, "@/link", "@/data"),
        (Access::Read, "~/data/deep/b.csv", "@/data/deep/b.csv"),
        (Access::Read, "@/data/in/b.csv", "@/data/deep/b.csv"),
        (Access::Read, "@/link/a.csv", "@/data/a.csv"),
        (Access::Read, "@/data/none.csv", "@/data/none.csv"),
        (Access::Read, "@/data/c.txt", "NotGranted"),
        (Access::Read, "@/data/out.csv", "LeadsElsewhere"),
        (Access::Read, "@/data/gone.csv", "Unresolvable"),
        (Access::Read, "@/data/own/k.csv", "Reserved"),
        (Access::Browse, "@", "NotGranted"),
        (Access::Read, "@/other/d.csv", "NotGranted"),
        (Access::Read, "@/out/x", "NotGranted"),
        (Access::Read, "@/data/../other/d.csv", "NotNormal"),
        (Access::Read, "@//data/a.csv", "NotNormal"),
        (Access::Read, "data/a.csv", "NotNormal"),
        (Access::Read, "@/data/a\0.csv", "NotNormal"),
        (Access::Write, "@/out/x", "@/out/x"),
        (Access::Write, "@/data/a.csv", "NotGranted"),
    ];
    for (access, path, expected) in rows {
        assert_eq!(resolved(access, path), expected, "{access:?} {path}");
    }
    assert!(matches!(files.resolve(Access::Read, &"/a".repeat(3_000)), Err(PathRefusal::TooLong)));
}
