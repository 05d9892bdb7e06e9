use std::os::unix::fs::symlink;

use lockhouse_base::own_places::OwnPlaces;

use super::*;

/// Creates a home directory with these files. A name that ends with a slash is a directory.
fn home_with(files: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().canonicalize().expect("a path");
    for file in files {
        let path = home.join(file);
        let folder = if file.ends_with('/') { Some(path.as_path()) } else { path.parent() };
        std::fs::create_dir_all(folder.expect("a folder")).expect("a folder");
        if !file.ends_with('/') {
            std::fs::write(&path, "").expect("a file");
        }
    }
    (directory, home)
}

fn find(home: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> NamedPaths {
    let absolute = |text: &str| text.replace('~', &home.display().to_string());
    let command = ServerCommand {
        program: "true".into(),
        arguments: arguments.iter().map(|text| absolute(text)).collect(),
        environment: environment.iter().map(|(name, text)| ((*name).to_owned(), absolute(text))).collect(),
        ..ServerCommand::default()
    };
    let own = OwnPlaces {
        files: [home.join("project/lockhouse.toml"), home.join("tool/token")].into(),
        folders: [home.join("log/audit")].into(),
        code: [home.join("venv")].into(),
        ..OwnPlaces::default()
    };
    let places = SandboxPlaces { folder: Some(home.join("own")), own: own.into() };
    NamedPaths::find(&command, Some(home), &places)
}

/// The granted and withheld paths relative to the home directory, in three sorted lists.
fn relative(home: &Path, found: &NamedPaths) -> [Vec<String>; 3] {
    let below = |path: &PathBuf| {
        path.strip_prefix(home).map_or(path.display().to_string(), |path| path.display().to_string())
    };
    let withheld: Vec<PathBuf> = found.withheld.iter().map(|withheld| withheld.path.clone()).collect();
    [&found.read, &found.write, &withheld].map(|paths| {
        let mut paths: Vec<String> = paths.iter().map(below).collect();
        paths.sort();
        paths
    })
}

#[test]
fn each_named_path_gets_what_its_kind_needs() {
    let files = [
        "docs/a.txt",
        "notes.txt",
        "data/x.sqlite",
        "data/log.txt",
        "mcp/package.json",
        "mcp/dist/index.js",
        "mcp/node_modules/lib/index.js",
        "plain/server.py",
        "server.py",
        ".aws/credentials",
        ".ssh/id",
        ".config/tool/settings",
        "lib/python/a.py",
        "own/tmp/x",
    ];
    let (_directory, home) = home_with(&files);
    for (argument, read, write, withheld) in [
        ("~/docs", vec!["docs"], vec!["docs"], vec![]),
        ("~/docs/", vec!["docs"], vec!["docs"], vec![]),
        ("~/notes.txt", vec![], vec!["notes.txt"], vec!["notes.txt"]),
        ("--file=~/notes.txt", vec![], vec!["notes.txt"], vec!["notes.txt"]),
        ("~/docs/a.txt", vec!["docs"], vec!["docs"], vec![]),
        ("~/data/x.sqlite", vec!["data"], vec!["data"], vec![]),
        ("~/data/new.jsonl", vec!["data"], vec!["data"], vec![]),
        ("~/new.jsonl", vec![], vec![], vec!["new.jsonl"]),
        ("~/mcp/dist/index.js", vec!["mcp", "mcp/dist", "mcp/dist/index.js"], vec![], vec![]),
        (
            "~/mcp/node_modules/lib/index.js",
            vec!["mcp/node_modules", "mcp/node_modules/lib/index.js"],
            vec![],
            vec![],
        ),
        ("~/plain/server.py", vec!["plain", "plain/server.py"], vec![], vec![]),
        ("~/server.py", vec!["server.py"], vec![], vec![]),
        ("~/.aws/credentials", vec![".aws/credentials"], vec![], vec![]),
        ("~/.aws", vec![], vec![], vec![".aws"]),
        ("~/.ssh/", vec![], vec![], vec![".ssh"]),
        ("~/.config", vec![], vec![], vec![".config"]),
        ("~/.config/tool", vec![".config/tool"], vec![".config/tool"], vec![]),
        ("~", vec![], vec![], vec![""]),
        ("/", vec![], vec![], vec!["/"]),
        ("~/own/tmp/x", vec![], vec![], vec![]),
        ("/usr/bin", vec![], vec![], vec![]),
        ("/no/such/path", vec![], vec![], vec![]),
    ] {
        let found = relative(&home, &find(&home, &[argument], &[]));
        let expected: [Vec<String>; 3] =
            [read, write, withheld].map(|paths| paths.into_iter().map(str::to_owned).collect());
        assert_eq!(found, expected, "{argument}");
    }
    let found =
        relative(&home, &find(&home, &[], &[("PYTHONPATH", "~/lib/python:~/docs"), ("ROOT", "~/data")]));
    let expected = [vec!["data", "docs", "lib/python"], vec!["data"], vec![]];
    assert_eq!(found, expected.map(|paths| paths.into_iter().map(str::to_owned).collect::<Vec<_>>()));
}

/// The files in force are protected, wherever they are: `find` names some.
#[test]
fn a_folder_with_files_of_lockhouse_is_not_granted() {
    let files = [
        "project/lockhouse.toml",
        "project/data/a.txt",
        "tool/token",
        "tool/server.py",
        "log/audit/1.jsonl",
        "log/other/x",
        "venv/bin/lockhouse",
        "venv/lib/python3.11/site.py",
    ];
    let (_directory, home) = home_with(&files);
    for (argument, read, write, withheld) in [
        ("~/project", vec![], vec![], vec!["project"]),
        ("~/project/data", vec!["project/data"], vec!["project/data"], vec![]),
        ("~/project/lockhouse.toml", vec!["project/lockhouse.toml"], vec![], vec![]),
        ("~/project/new.db", vec![], vec![], vec!["project/new.db"]),
        ("~/tool/server.py", vec!["tool/server.py"], vec![], vec![]),
        ("~/log", vec![], vec![], vec!["log"]),
        ("~/log/audit", vec![], vec![], vec!["log/audit"]),
        ("~/log/other", vec!["log/other"], vec!["log/other"], vec![]),
        ("~/venv", vec![], vec![], vec!["venv"]),
        ("~/venv/bin/lockhouse", vec!["venv/bin/lockhouse"], vec![], vec![]),
    ] {
        let found = relative(&home, &find(&home, &[argument], &[]));
        let expected: [Vec<String>; 3] =
            [read, write, withheld].map(|paths| paths.into_iter().map(str::to_owned).collect());
        assert_eq!(found, expected, "{argument}");
    }
    // A server may read and execute packages beside Lockhouse's own.
    let read = relative(&home, &find(&home, &[], &[("PYTHONPATH", "~/venv/lib")]));
    assert_eq!(read[0], ["venv/lib"]);
}

#[test]
fn links_and_files_that_a_server_could_have_made_grant_nothing() {
    let (_directory, home) = home_with(&["private/x.txt", "granted/", "linked/venv/bin/python"]);
    for (link, target) in [("granted/out", "private"), ("granted/x.txt", "private/x.txt"), ("way", "private")]
    {
        symlink(home.join(target), home.join(link)).expect("a link");
    }
    std::fs::write(home.join("linked/venv/pyvenv.cfg"), format!("home = {}/private/bin", home.display()))
        .expect("a file");
    let withheld = |argument: &str| relative(&home, &find(&home, &[argument], &[]));
    for argument in ["~/granted/out", "~/granted/x.txt", "~/way/x.txt"] {
        let [read, write, withheld] = withheld(argument);
        assert!(read.is_empty() && write.is_empty() && withheld.len() == 1, "{argument}");
    }
    // With the folder itself, a link in it is no path of its own.
    let found = relative(&home, &find(&home, &["~/granted", "~/granted/out"], &[]));
    assert_eq!(found, [vec!["granted".to_owned()], vec!["granted".to_owned()], vec![]]);
    // A server that can change its virtual environment cannot name another one there.
    let program = home.join("linked/venv/bin/python");
    let command = |directory: Option<PathBuf>| ServerCommand {
        program: program.display().to_string(),
        directory,
        ..ServerCommand::default()
    };
    let read = |directory| NamedPaths::find(&command(directory), Some(&home), &SandboxPlaces::default()).read;
    assert!(read(None).contains(&home.join("private")));
    assert!(!read(Some(home.join("linked"))).contains(&home.join("private")));
}

#[test]
fn the_number_of_paths_is_bounded() {
    let (_directory, home) = home_with(&["docs/"]);
    let names: Vec<String> = (0..2 * PATHS_MAX).map(|number| format!("~/docs-{number}")).collect();
    for name in &names {
        std::fs::create_dir(home.join(name.trim_start_matches("~/"))).expect("a directory");
    }
    let found = find(&home, &names.iter().map(String::as_str).collect::<Vec<_>>(), &[]);
    assert_eq!((found.write.len(), found.withheld.len()), (PATHS_MAX, PATHS_MAX));
}
