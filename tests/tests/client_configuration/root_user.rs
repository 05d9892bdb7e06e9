//! Tests of commands that root runs on files of another account: root follows no directories and links that the account
//! could have planted, and takes no files away from it.

use std::os::unix::fs::{MetadataExt, lchown, symlink};

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure};

use crate::client_configuration::files;

const OTHER: u32 = 64_321;
const ENTRY: &str = "{\"mcpServers\": {\"notes\": {\"command\": \"/bin/true\", \"env\": {\"API_TOKEN\": \"ghp_0123456789abcdefghij\"}}}}";

/// Lockhouse with files of root in the directory `victim`, and a link to one of them. The account `owner` made the link.
fn with_link(link: &str, target: &str, owner: u32) -> Lockhouse {
    let lockhouse = Lockhouse::new();
    lockhouse.file("victim/mcp.json", ENTRY);
    lockhouse.file("victim/config.toml", "[pool]\nidle = 1\n");
    lockhouse.file("victim/policy.toml", "version = 1\n");
    for directory in
        ["home/.cursor", "config/lockhouse", "state/lockhouse", "victim/environments", "victim/secrets"]
    {
        std::fs::create_dir_all(lockhouse.path(directory)).unwrap();
    }
    lockhouse.file("home/.cursor/mcp.json", ENTRY);
    let _ = std::fs::remove_file(lockhouse.path(link));
    symlink(lockhouse.path(target), lockhouse.path(link)).unwrap();
    lchown(lockhouse.path(link), Some(owner), None).unwrap();
    lockhouse
}

/// What is below the directory `victim`: names, owners and contents.
fn victim(lockhouse: &Lockhouse) -> Vec<(String, u32, String)> {
    let in_folder = |folder: &str| {
        let names = files(lockhouse, folder).into_iter();
        names.map(|name| format!("{folder}/{name}")).collect::<Vec<_>>()
    };
    let names = ["victim", "victim/environments", "victim/secrets"].into_iter().flat_map(in_folder);
    let facts = |name: String| {
        let path = lockhouse.path(&name);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        (name, path.metadata().unwrap().uid(), text)
    };
    names.map(facts).collect()
}

#[test]
fn root_follows_no_link_of_another_account() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let mut table = Table::new("links that another account made, and links of root as a control");
    let client = ("home/.cursor/mcp.json", "victim/mcp.json");
    let commands: [(&[&str], _); 7] = [
        (&["init", "--client", "cursor", "--yes", "--no-connect"], client),
        (&["setup", "--yes", "--no-connect"], client),
        (&["setup", "--yes", "--no-connect"], ("config/lockhouse/secrets", "victim/secrets")),
        (&["import", "--yes", "--no-connect"], ("config/lockhouse/secrets", "victim/secrets")),
        (
            &["server", "add", "x", "--no-connect", "--", "/bin/true"],
            ("config/lockhouse/config.toml", "victim/config.toml"),
        ),
        (&["policy", "allow", "x.y", "--unknown"], ("config/lockhouse/policy.toml", "victim/policy.toml")),
        (&["python", "add", "numpy"], ("state/lockhouse/python", "victim/environments")),
    ];
    for (arguments, (link, target)) in commands {
        for owner in [OTHER, 0] {
            let lockhouse = with_link(link, target, owner);
            let before = victim(&lockhouse);
            let mut command = lockhouse.command(arguments);
            // No package is installed: nothing listens there.
            command.env("PIP_INDEX_URL", "http://127.0.0.1:9/").env("PIP_RETRIES", "0");
            command.env("UV_DEFAULT_INDEX", "http://127.0.0.1:9/").env("UV_HTTP_RETRIES", "0");
            let finished = CommandOutput::run(&mut command, b"");
            let is_unchanged = before == victim(&lockhouse);
            let name = format!("{} with {link}", arguments.join(" "));
            if owner == OTHER {
                let told = finished.stderr.contains("belongs to 64321") && finished.status != Some(0);
                table.row(name, ensure(is_unchanged && told, (&finished, victim(&lockhouse))));
            } else {
                let is_followed = !is_unchanged || finished.stderr.contains("creating ");
                table.row(format!("{name}: control"), ensure(is_followed, &finished));
            }
        }
    }
    table.finish();
}

/// A directory of another account is not written either, and its files stay the account's.
#[test]
fn root_writes_nothing_into_a_directory_of_another_account() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let lockhouse = Lockhouse::new();
    lockhouse.file("home/.cursor/mcp.json", ENTRY);
    for path in ["home", "home/.cursor", "home/.cursor/mcp.json"] {
        lchown(lockhouse.path(path), Some(OTHER), None).unwrap();
    }
    let facts = || {
        let status = lockhouse.path("home/.cursor/mcp.json").metadata().unwrap();
        (status.uid(), status.ino(), files(&lockhouse, "home/.cursor"))
    };
    let before = facts();
    let mut table = Table::new("a directory of another account");
    for arguments in [&["init", "--yes", "--no-connect"][..], &["setup", "--yes", "--no-connect"]] {
        let finished = lockhouse.run(arguments);
        let told = finished.stderr.contains("run this command as 64321");
        let holds = told && finished.status != Some(0) && facts() == before;
        table.row(arguments[0], ensure(holds, (&finished, facts())));
    }
    table.finish();
}
