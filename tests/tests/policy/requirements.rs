//! Tests of an administrator's requirements, which every configuration on the machine must meet.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure, equal, fixture_server};

/// Returns a Lockhouse test fixture with two upstream servers that run the same program, and with this text as the
/// administrator's requirements file. One of the servers also has an argument and an environment variable.
fn configured(requirements: &str) -> Lockhouse {
    let (program, lockhouse) = (fixture_server(), Lockhouse::new());
    let config = format!(
        "[servers.good]\ncommand = {program:?}\n\n[servers.other]\ncommand = {program:?}\nargs = [\"--legacy-only\"]\nenv = {{TOKEN = \"hunter2-hunter2\"}}\n"
    );
    let lockhouse = lockhouse.config(&config).policy("version = 1\n");
    lockhouse.file("requirements.toml", requirements);
    lockhouse
}

fn run_with_requirements(lockhouse: &Lockhouse, arguments: &[&str]) -> CommandOutput {
    let mut command = lockhouse.command(arguments);
    CommandOutput::run(command.env("LOCKHOUSE_REQUIREMENTS", lockhouse.path("requirements.toml")), b"")
}

/// Returns the names of the upstream servers that an administrator's requirements file permits, from the output of a
/// finished `lockhouse tools list`.
fn usable_servers(finished: &CommandOutput) -> Vec<&str> {
    let has =
        |name: &&str| finished.stdout.lines().any(|line| line.contains(*name) && line.contains("count"));
    ["good", "other", "third"].into_iter().filter(has).collect()
}

pub(super) fn sha256(path: &Path) -> String {
    let output = Command::new("sha256sum").arg(path).output().unwrap();
    String::from_utf8(output.stdout).unwrap().split(' ').next().unwrap().to_owned()
}

#[test]
fn a_server_is_used_only_if_its_name_and_command_are_approved() {
    let program = fixture_server();
    let (folder, digest) = (program.parent().unwrap().display().to_string(), sha256(&program));
    let good = format!("[[approved]]\nname = \"good\"\ncommand = {program:?}\n");
    let bare = format!("[[approved]]\nname = \"other\"\ncommand = {program:?}\n");
    let other = format!("{bare}env = [\"TOKEN\"]\n");
    let rows: &[(&str, String, &[&str], &str)] = &[
        ("nothing", String::new(), &["good", "other"], ""),
        ("one of two", good.clone(), &["good"], "other of "),
        ("one of two: why", good.clone(), &["good"], "no [[approved]] entry has its name"),
        ("both", format!("{good}{other}"), &["good", "other"], ""),
        ("no server at all", "approved = []\n".into(), &[], "good of "),
        (
            "another command",
            format!("{other}[[approved]]\nname = \"good\"\ncommand = \"/bin/true\"\n"),
            &["other"],
            "requirements.toml:5: its command is",
        ),
        ("arguments", format!("{other}args = [\"--legacy-only\"]\n"), &["other"], "good of "),
        (
            "other arguments",
            format!("{other}args = [\"--one-era\"]\n"),
            &[],
            "its arguments do not begin as approved",
        ),
        ("its variable", other.clone(), &["other"], "good of "),
        ("a variable that is not named", bare.clone(), &[], "its env sets TOKEN"),
        ("another variable", format!("{bare}env = [\"HOST\"]\n"), &[], "its env sets TOKEN"),
        ("its digest", format!("{good}sha256 = {digest:?}\n"), &["good"], "other of "),
        ("another digest", format!("{good}sha256 = \"{}\"\n", "0".repeat(64)), &[], &digest),
        (
            "a url",
            "[[approved]]\nname = \"good\"\nurl = \"https://example.com/mcp\"\n".into(),
            &[],
            "it has a command where a url is approved",
        ),
        ("denied by name", "[[denied]]\nname = \"good\"\n".into(), &["other"], "denied by "),
        ("denied by its beginning", "[[denied]]\nname = \"oth*\"\n".into(), &["good"], "requirements.toml:1"),
        ("denied by command", format!("[[denied]]\ncommand = {program:?}\n"), &[], "denied by "),
        ("denied by arguments", "[[denied]]\nargs = [\"--legacy-only\"]\n".into(), &["good"], "denied by "),
        ("denied by digest", format!("[[denied]]\nsha256 = {digest:?}\n"), &[], "denied by "),
        (
            "denied with another name",
            format!("[[denied]]\nname = \"x\"\ncommand = {program:?}\n"),
            &["good", "other"],
            "",
        ),
        (
            "denied though approved",
            format!("{good}{other}[[denied]]\nname = \"good\"\n"),
            &["other"],
            "denied by ",
        ),
        (
            "a list, with one that is not configured",
            format!("[servers.good]\ncommand = {program:?}\n[servers.third]\ncommand = {program:?}\n"),
            &["good", "third"],
            "it is not one of them",
        ),
        (
            "a list, by another way",
            format!("[servers.good]\ncommand = {program:?}\nargs = [\"--legacy-only\"]\n"),
            &["good"],
            "with another command or url",
        ),
    ];
    let mut table = Table::new("requirements, and the usable servers");
    for (what, requirements, expected, words) in rows {
        let listed = run_with_requirements(&configured(requirements), &["tools", "list"]);
        let told = listed.stderr.contains(words) && (listed.stderr.contains("left out") != words.is_empty());
        let outcome = equal(usable_servers(&listed), expected.to_vec()).and(ensure(told, &listed.stderr));
        table.row(*what, outcome.and(ensure(!listed.stderr.contains("hunter2"), &listed.stderr)));
    }
    // The command as a name in PATH, as a symbolic link, and relative to a directory.
    let bare_good = good;
    let good = format!("{bare_good}env = [\"PATH\"]\n");
    let lockhouse = configured(&good);
    let planted = lockhouse.file("planted/fixture-server", "#!/bin/sh\nexit 9\n");
    std::fs::set_permissions(planted, PermissionsExt::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink(&program, lockhouse.path("link")).unwrap();
    let planted = lockhouse.path("planted").display().to_string();
    let link = lockhouse.path("link").display().to_string();
    let denied = format!("[[denied]]\ncommand = {program:?}\n");
    for (what, command, path, requirements, expected, words) in [
        ("found in PATH", "fixture-server", folder.clone(), &good, vec!["good"], ""),
        (
            "another in PATH",
            "fixture-server",
            format!("{planted}:{folder}"),
            &good,
            vec![],
            "planted/fixture-server",
        ),
        (
            "a name that PATH does not have",
            "fixture-server",
            "/nonexistent".into(),
            &good,
            vec![],
            "its command is not found",
        ),
        ("a link to what is approved", &link, folder.clone(), &good, vec![], "its command is"),
        ("a link to what is denied", &link, folder.clone(), &denied, vec![], "denied by"),
    ] {
        let config = format!("[servers.good]\ncommand = {command:?}\nenv = {{PATH = {path:?}}}\n");
        lockhouse.file("config/lockhouse/config.toml", config);
        lockhouse.file("requirements.toml", requirements);
        let listed = run_with_requirements(&lockhouse, &["tools", "list"]);
        table.row(
            what,
            equal(usable_servers(&listed), expected)
                .and(ensure(listed.stderr.contains(words), &listed.stderr)),
        );
    }
    // An argument that names a file means another file in another working directory.
    let (here, there) = (lockhouse.path("planted"), lockhouse.path(""));
    let cwd = |path: &Path| format!("cwd = {path:?}\n");
    for (what, entry, requirements, expected, words) in [
        ("control: none of either", String::new(), bare_good.clone(), vec!["good"], ""),
        ("a directory that is not named", cwd(&here), bare_good.clone(), vec![], "its cwd is"),
        ("its directory", cwd(&here), bare_good.clone() + &cwd(&here), vec!["good"], ""),
        ("another directory", cwd(&here), bare_good.clone() + &cwd(&there), vec![], "its cwd is"),
        ("no directory", String::new(), bare_good.clone() + &cwd(&here), vec![], "it has no cwd"),
        ("denied by directory", cwd(&here), format!("[[denied]]\n{}", cwd(&here)), vec![], "denied by"),
        ("denied by another", cwd(&here), format!("[[denied]]\n{}", cwd(&there)), vec!["good"], ""),
        ("denied by command, in any", cwd(&here), denied.clone(), vec![], "denied by"),
    ] {
        let config = format!("[servers.good]\ncommand = {program:?}\n{entry}");
        lockhouse.file("config/lockhouse/config.toml", config);
        lockhouse.file("requirements.toml", requirements);
        let listed = run_with_requirements(&lockhouse, &["tools", "list"]);
        table.row(
            what,
            equal(usable_servers(&listed), expected)
                .and(ensure(listed.stderr.contains(words), &listed.stderr)),
        );
    }
    table.finish();
}

#[test]
fn invalid_requirements_are_reported_with_the_line_and_prevent_the_start() {
    let rows = [
        ("[[approved]]\nname = \"a\"\ncommand = \"/a\"\nargz = []\n", "requirements.toml:4", "argz"),
        ("[[denied]]\nname = \"a\"\n[allowed]\n", "requirements.toml:3", "unknown field `allowed`"),
        ("\n[[approved]]\ncommand = \"/a\"\n", "requirements.toml:2", "has a name"),
        ("[[approved]]\nname = \"a\"\n", "requirements.toml:1", "a command or a url"),
        ("[[approved]]\nname = \"a\"\ncommand = \"npx\"\n", "requirements.toml:3", "absolute path"),
        ("[[approved]]\nname = \"a b\"\ncommand = \"/a\"\n", "requirements.toml:2", "A-Z"),
        (
            "[[approved]]\nname = \"a\"\ncommand = \"/a\"\nsha256 = \"12\"\n",
            "requirements.toml:4",
            "64 hexadecimal",
        ),
        ("[[approved]]\nname = \"a\"\nurl = \"https://example.com*\"\n", "requirements.toml:3", "HOST/PATH"),
        (
            "[[approved]]\nname = \"a\"\nurl = \"https://x/\"\ncommand = \"/a\"\n",
            "requirements.toml:3",
            "not both",
        ),
        ("[[denied]]\n", "requirements.toml:1", "a denied server has"),
        (
            "[servers.x]\ncommand = \"a\"\nenv = {T = \"SEKRET\", U = [\"SEKRET\"]}\n",
            "requirements.toml:3",
            "expected a string",
        ),
        ("[[denied]\n", "requirements.toml:1", "not valid"),
    ];
    let mut table = Table::new("faults");
    for (text, place, words) in rows {
        let lockhouse = configured(text);
        for arguments in [&["tools", "list"][..], &["serve"], &["run", "-c", "1", "--language", "python"]] {
            let finished = run_with_requirements(&lockhouse, arguments);
            let told = finished.stderr.contains(place) && finished.stderr.contains(words);
            let holds = finished.status == Some(2) && told && !finished.stderr.contains("SEKRET");
            table.row(
                format!("{arguments:?}: {text:?}"),
                ensure(holds && usable_servers(&finished).is_empty(), &finished),
            );
        }
    }
    table.finish();
}

#[test]
fn requirements_writable_by_others_prevent_the_start() {
    let mut table = Table::new("files that others could have written");
    let mut row = |what: &str, words: &str, change: &dyn Fn(&Lockhouse)| {
        let lockhouse = configured("[[denied]]\nname = \"other\"\n");
        change(&lockhouse);
        let listed = run_with_requirements(&lockhouse, &["tools", "list"]);
        let holds = match words {
            "" => usable_servers(&listed) == ["good"],
            words => {
                listed.status == Some(2)
                    && listed.stderr.contains(words)
                    && usable_servers(&listed).is_empty()
            }
        };
        table.row(what, ensure(holds, &listed));
    };
    let mode = |lockhouse: &Lockhouse, below: &str, mode| {
        std::fs::set_permissions(lockhouse.path(below), PermissionsExt::from_mode(mode)).unwrap();
    };
    row("its owner alone", "", &|_| {});
    row("its group", "can be written by others", &|lockhouse| mode(lockhouse, "requirements.toml", 0o664));
    row("everybody", "can be written by others", &|lockhouse| mode(lockhouse, "requirements.toml", 0o646));
    row("everybody replaces it", "can be written by others", &|lockhouse| mode(lockhouse, "", 0o777));
    row("who wrote what it links to", "is a symbolic link", &|lockhouse| {
        let (file, target) = (lockhouse.path("requirements.toml"), lockhouse.path("target"));
        std::fs::rename(&file, &target).unwrap();
        std::os::unix::fs::symlink(target, file).unwrap();
    });
    row("nobody: it is not there", "cannot read", &|lockhouse| {
        std::fs::remove_file(lockhouse.path("requirements.toml")).unwrap();
    });
    if nix::unistd::geteuid().is_root() {
        row("another account", "belongs to 12345: it must be root's", &|lockhouse| {
            std::os::unix::fs::chown(lockhouse.path("requirements.toml"), Some(12_345), None).unwrap();
        });
    }
    table.finish();
}

/// Tests `/etc/lockhouse/requirements.toml`. Needs root, because it mounts a test directory over `/etc` in a mount
/// namespace.
#[test]
fn the_system_requirements_apply_regardless_of_the_environment() {
    let lockhouse = configured("[[denied]]\nname = \"other\"\n");
    let (etc, var) = (lockhouse.path("etc"), lockhouse.path("var"));
    std::fs::create_dir(&var).unwrap();
    let system = lockhouse.file("etc/lockhouse/requirements.toml", "[[denied]]\nname = \"good\"\n");
    let listed = |further: Option<&Path>| {
        let inner = lockhouse.command(&["tools", "list"]);
        // The marker of a managed host must not be left on this one.
        let script = "mount --bind \"$1\" /etc && mount --bind \"$2\" /var/lib && shift 2 && exec \"$@\"";
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c", script, "sh"])
            .arg(&etc)
            .arg(&var)
            .arg(inner.get_program())
            .args(inner.get_args());
        command.env_clear().envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.envs(further.map(|path| ("LOCKHOUSE_REQUIREMENTS", path)));
        CommandOutput::run(&mut command, b"")
    };
    if listed(None).status != Some(0) {
        return println!("skipped: no mount namespace with an /etc of its own ({:?})", listed(None));
    }
    let mut table = Table::new("/etc/lockhouse/requirements.toml, and LOCKHOUSE_REQUIREMENTS besides");
    let nothing = lockhouse.file("nothing.toml", "");
    let further = lockhouse.path("requirements.toml");
    let list = lockhouse.file("list.toml", format!("[servers.good]\ncommand = {:?}\n", fixture_server()));
    for (what, further, expected) in [
        ("alone", None, vec!["other"]),
        ("with an empty file", Some(nothing.as_path()), vec!["other"]),
        ("with one that lists what it denies", Some(list.as_path()), vec![]),
        ("with one that denies the rest", Some(further.as_path()), vec![]),
    ] {
        let listed = listed(further);
        let named = listed.stderr.contains("denied by /etc/lockhouse/requirements.toml:1");
        table.row(what, equal(usable_servers(&listed), expected).and(ensure(named, &listed)));
    }
    for (what, change, words) in [
        ("when others can write it", 0o666, "/etc/lockhouse/requirements.toml can be written by others"),
        ("with a key that is not known", 0o644, "requirements.toml:1"),
    ] {
        std::fs::write(&system, "deny = 3\n").unwrap();
        std::fs::set_permissions(&system, PermissionsExt::from_mode(change)).unwrap();
        let listed = listed(Some(&nothing));
        table.row(what, ensure(listed.status == Some(2) && listed.stderr.contains(words), &listed));
    }
    table.finish();
}
