//! Tests of upstream servers with `sandbox = { profile = "default" }`: what the profile grants is derived from the
//! server's configuration. Each refused attempt succeeds in a control server without a sandbox.

use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use lockhouse_tests::{Lockhouse, Table, ensure};
use serde_json::json;

use crate::sandbox::missing_protections::run_without;
use crate::sandbox::upstream_confinement::{program, python};

const POLICY: &str = "version = 1\n[servers.held]\nallow = [\"*\"]\n[servers.free]\nallow = [\"*\"]\n";

/// Files with keys, credentials and settings, and other files of the user.
const SECRETS: [&str; 10] = [
    "home/.ssh/id_ed25519",
    "home/.aws/credentials",
    "home/.local/share/keyrings/login.keyring",
    "home/.claude.json",
    "home/.npmrc",
    "home/.bash_history",
    "home/private/notes.txt",
    "config/lockhouse/secrets/other.TOKEN",
    "config/gcloud/credentials.db",
    "state/lockhouse/other",
];

/// Creates the files of a home directory, and a server `held` in the sandbox and a server `free` without one. Both have
/// the same arguments and variables.
fn with_servers() -> Lockhouse {
    let lockhouse = Lockhouse::new();
    for name in SECRETS {
        lockhouse.file(name, "SEKRET");
    }
    for name in [
        "granted/file",
        "named.txt",
        "data/memory.jsonl",
        "link-target/file",
        "project/file",
        "keys/key.json",
    ] {
        lockhouse.file(&format!("home/{name}"), "x");
    }
    lockhouse.file("home/.local/bin/tool", "x");
    symlink(lockhouse.path("home/link-target"), lockhouse.path("home/link")).unwrap();
    let home = lockhouse.path("home");
    let arguments = json!([
        program(),
        home.join("granted"),
        format!("--file={}", home.join("named.txt").display()),
        home,
        home.join(".ssh"),
        home.join("link"),
        home.join("data/new.jsonl"),
    ]);
    let mut config = String::new();
    for server in ["held", "free"] {
        config += &format!("[servers.{server}]\ncommand = {:?}\nargs = {arguments}\n", python().0);
        config += &format!("cwd = {:?}\n", home.join("project"));
        config += &format!("env = {{ KEY_FILE = {:?} }}\n", home.join(".aws/credentials"));
        if server == "held" {
            config += "sandbox = { profile = \"default\" }\n";
        }
    }
    lockhouse.config(&config).policy(POLICY)
}

/// Whether the attempt of a server is expected to succeed in the sandbox. Without it, each succeeds.
const DONE: bool = true;
const REFUSED: bool = false;

#[test]
fn the_default_profile_grants_what_the_configuration_names_and_nothing_else_of_the_user() {
    let lockhouse = with_servers();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let _unix = UnixListener::bind(lockhouse.path("home/granted/socket")).unwrap();
    let mut rows: Vec<(&str, String, bool)> = Vec::new();
    for name in SECRETS {
        // A variable names this file.
        let expected = if name == "home/.aws/credentials" { DONE } else { REFUSED };
        rows.push(("read", name.into(), expected));
    }
    rows.extend([
        ("write", "home/.aws/credentials".into(), REFUSED),
        ("list", "home".into(), REFUSED),
        ("list", "home/.ssh".into(), REFUSED),
        ("write", "home/new".into(), REFUSED),
        ("write", "home/.bashrc".into(), REFUSED),
        ("read", "home/.local/bin/tool".into(), DONE),
        ("write", "home/.local/bin/tool".into(), REFUSED),
        ("read", "home/granted/file".into(), DONE),
        ("write", "home/granted/file".into(), DONE),
        ("write", "home/granted/new".into(), DONE),
        ("write", "home/named.txt".into(), DONE),
        ("write", "home/data/new.jsonl".into(), DONE),
        ("write", "home/project/new".into(), DONE),
        ("read", "home/link-target/file".into(), REFUSED),
        ("read_through_link", "home/.ssh/id_ed25519:home/granted/planted".into(), REFUSED),
        ("tcp", tcp.local_addr().unwrap().port().to_string(), DONE),
        ("netlink", String::new(), DONE),
        ("unix", "home/granted/socket".into(), REFUSED),
        ("pair", String::new(), DONE),
    ]);
    let absolute = |target: &str| {
        let part = |part: &str| match part.contains('/') || part == "home" {
            true => lockhouse.path(part).display().to_string(),
            false => part.to_owned(),
        };
        target.split(':').map(part).collect::<Vec<_>>().join(":")
    };
    let mut table = Table::new("attempts of a server with the profile default");
    for server in ["held", "free"] {
        let tries: Vec<_> = rows.iter().map(|(what, on, _)| json!([what, absolute(on)])).collect();
        let code = format!(
            "import json\nfrom mcp_tools.{server} import attempt\n[attempt(what=w, target=t) for w, t in json.loads({:?})]",
            json!(tries).to_string()
        );
        let answer = lockhouse.answer("python", &code);
        let found = answer["value"].as_array().unwrap_or_else(|| panic!("{answer}"));
        for ((what, on, expected), found) in rows.iter().zip(found) {
            let expected = *expected || server == "free";
            table.row(
                format!("{server}: {what} {on}: {expected}"),
                ensure((found == "done") == expected, found),
            );
        }
        // The control server has made this link.
        let _ = std::fs::remove_file(lockhouse.path("home/granted/planted"));
    }
    let folders = std::fs::read_dir(lockhouse.path("state/lockhouse/servers")).unwrap().count();
    table.row("the server in the sandbox has a folder of its own", ensure(folders == 1, folders));
    table.finish();
}

/// A server may plant a symbolic link in a folder that was granted to it. At its next start, the path is not granted,
/// and neither is what it leads to.
#[test]
fn a_server_cannot_extend_its_permissions_by_links_in_granted_folders() {
    let lockhouse = with_servers();
    let secret = lockhouse.path("home/private/notes.txt");
    let planted = lockhouse.path("home/data/new.jsonl");
    let code = |what: &str, target: String| {
        format!("from mcp_tools.held import attempt\nattempt(what='{what}', target='{target}')")
    };
    let value = |code: &str| lockhouse.answer("python", code)["value"].to_string();
    let mut table = Table::new("a planted link");
    let target = format!("{}:{}", secret.display(), planted.display());
    // The link is made, and what it leads to is refused.
    let first = value(&code("read_through_link", target));
    table.row("at first", ensure(planted.is_symlink() && first != "\"done\"", &first));
    for path in [&planted, &secret] {
        let again = value(&code("read", path.display().to_string()));
        table.row(format!("after the next start: {}", path.display()), ensure(again != "\"done\"", &again));
    }
    let control = value(&code("read", lockhouse.path("home/granted/file").display().to_string()));
    table.row("control: a granted file", ensure(control == "\"done\"", &control));
    table.finish();
}

#[test]
fn a_refused_access_names_the_setting() {
    let lockhouse = with_servers();
    let mut table = Table::new("refused accesses");
    let secret = lockhouse.path("home/private/notes.txt");
    let config = format!(
        "[servers.fails]\ncommand = {:?}\nargs = [\"-c\", {:?}]\nsandbox = {{ profile = \"default\" }}\n",
        python().0,
        format!("open({:?})", secret.display().to_string())
    );
    let lockhouse = lockhouse.config(&config);
    let listed = lockhouse.run(&["server", "get", "fails"]);
    let named =
        listed.stdout.contains("PermissionError") && listed.stdout.contains("it is confined by `sandbox` in");
    table.row("at the start", ensure(named, &listed));
    let told = lockhouse.run(&[
        "run",
        "--language",
        "python",
        "-c",
        "from mcp_tools import fails\nfails.anything()",
    ]);
    let is_model_told =
        told.transcript().contains("not available") && !told.stdout.contains("PermissionError");
    table.row("the program does not get the server's words", ensure(is_model_told, &told));
    table.finish();
}

#[test]
fn a_kernel_that_lacks_parts_of_the_sandbox_is_named() {
    let lockhouse = with_servers();
    let mut table = Table::new("kernels");
    let adds = ["server", "add", "more", "--force", "--", "/bin/true"];
    for (lack, words) in [
        ("landlock", "can read and change every file of its user"),
        (
            "landlock=2",
            "can empty every file of its user (this kernel has version 2 of Landlock; Linux 6.2 has 3)",
        ),
        ("landlock=4", "can send signals to other processes of its user"),
        ("landlock=6", "it writes only to a folder of its own"),
        ("namespaces", "it writes only to a folder of its own"),
    ] {
        let added = run_without(&lockhouse, lack, &adds);
        let is_told = added.transcript().to_lowercase().contains(&words.to_lowercase());
        table.row(format!("{lack}: {words}"), ensure(added.status == Some(0) && is_told, &added));
        let tools = run_without(&lockhouse, lack, &["tools", "list"]);
        table.row(format!("{lack}: the server starts"), ensure(tools.stdout.contains("held"), &tools));
    }
    table.finish();
}
