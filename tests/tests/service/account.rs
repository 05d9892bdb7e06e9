//! Tests of commands that run as the account of a service, while the configuration belongs to root.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::process::Command;

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure, equal, fixture_server, on_terminal};
use nix::unistd::{User, geteuid};

/// An account that every host has.
const ACCOUNT: &str = "nobody";

/// A configuration of root, a state directory of the account, and the commands between them.
struct Service {
    lockhouse: Lockhouse,
    account: User,
}

impl Service {
    /// `None` without root, who alone can change to another account.
    fn new() -> Option<Self> {
        let account = User::from_name(ACCOUNT).unwrap().filter(|_| geteuid().is_root())?;
        let lockhouse = Lockhouse::new();
        let set_mode = |name: &str, mode| {
            std::fs::set_permissions(lockhouse.path(name), PermissionsExt::from_mode(mode)).unwrap();
        };
        set_mode("", 0o755);
        let uid = lockhouse.path("state/uid").display().to_string();
        let arguments =
            serde_json::json!(["-c", format!("id -u > {uid}; exec {}", fixture_server().display())]);
        lockhouse
            .file("etc/config.toml", format!("# mine\n[servers.t]\ncommand = \"sh\"\nargs = {arguments}\n"));
        lockhouse.file("etc/policy.toml", "version = 1\n[servers.t]\nallow = [\"add\"]\n");
        lockhouse.file("etc/requirements.toml", "# of the administrator\n");
        for name in ["etc/config.toml", "etc/policy.toml"] {
            chown(lockhouse.path(name), None, Some(account.gid.as_raw())).unwrap();
            set_mode(name, 0o640);
        }
        set_mode("etc", 0o755);
        std::fs::create_dir(lockhouse.path("state")).unwrap();
        chown(lockhouse.path("state"), Some(account.uid.as_raw()), Some(account.gid.as_raw())).unwrap();
        Some(Self { lockhouse, account })
    }

    fn command(&self, options: &[&str], arguments: &[&str]) -> Command {
        let mut command = Command::new(self.lockhouse.program());
        command.args(options).arg("--config").arg(self.lockhouse.path("etc/config.toml"));
        command.arg("--policy").arg(self.lockhouse.path("etc/policy.toml")).args(arguments);
        command.env_clear().env("PATH", "/usr/bin:/bin").current_dir("/");
        for name in ["HOME", "STATE_DIRECTORY", "CACHE_DIRECTORY", "LOGS_DIRECTORY", "RUNTIME_DIRECTORY"] {
            command.env(name, self.lockhouse.path("state"));
        }
        command
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        CommandOutput::run(&mut self.command(&["--account", ACCOUNT], arguments), b"")
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.lockhouse.path(name)).unwrap_or_default()
    }

    /// Returns owner, group and mode of a file.
    fn attributes(&self, name: &str) -> (u32, u32, u32) {
        let file = std::fs::metadata(self.lockhouse.path(name)).unwrap();
        (file.uid(), file.gid(), file.mode() & 0o7777)
    }
}

#[test]
fn commands_run_as_the_account_and_change_the_configuration_of_root() {
    let Some(service) = Service::new() else { return };
    let (uid, gid) = (service.account.uid.as_raw(), service.account.gid.as_raw());
    let mut table = Table::new("commands about a service");
    let listed = service.run(&["tools", "list"]);
    table.row("control: the server runs", ensure(listed.stdout.contains("echo"), &listed));
    table.row("as the account", equal(service.read("state/uid").trim(), uid.to_string().as_str()));
    for (arguments, file, words) in [
        (&["policy", "deny", "t.count"][..], "etc/policy.toml", "deny = [\"count\"]"),
        (&["policy", "allow", "t.echo"], "etc/policy.toml", "\"echo\""),
        (&["server", "add", "u", "--", "/bin/true"], "etc/config.toml", "[servers.u]"),
    ] {
        let changed = service.run(arguments);
        let is_changed = changed.status == Some(0) && service.read(file).contains(words);
        table.row(format!("{arguments:?}"), ensure(is_changed, (&changed, service.read(file))));
        table.row(format!("{arguments:?}: owner and mode"), equal(service.attributes(file), (0, gid, 0o640)));
    }
    table.row("comments are kept", ensure(service.read("etc/config.toml").contains("# mine"), ""));
    let removed = service.run(&["server", "remove", "u"]);
    let is_removed = removed.status == Some(0) && !service.read("etc/config.toml").contains("servers.u");
    table.row("server remove", ensure(is_removed, &removed));
    let refused = service.run(&["policy", "init"]);
    table.row("a failure passes its exit status", equal(refused.status, Some(2)));
    let made = service.run(&["policy", "init", "--force"]);
    table.row(
        "policy init --force",
        equal((made.status, service.attributes("etc/policy.toml")), (Some(0), (0, gid, 0o640))),
    );
    let token = service.run(&["token", "create", "ada"]);
    table.row("a token", ensure(token.status == Some(0) && token.stdout.starts_with("lh_"), &token));
    table.row("belongs to the account", equal(service.attributes("state/client-tokens.json").0, uid));
    let names = std::fs::read_dir(service.lockhouse.path("etc")).unwrap().count();
    table.row("no draft is left", equal(names, 3));
    table.finish();
}

/// A process in the session of root's terminal can type commands for root, and read what root types.
#[test]
fn servers_of_the_account_get_nothing_that_the_caller_has_open() {
    let Some(service) = Service::new() else { return };
    let mut table = Table::new("what a server gets of root's command");
    let (terminal, kept) = (service.lockhouse.path("state/terminal"), service.lockhouse.path("kept"));
    for (name, options, has_terminal) in
        [("control: as root", &[][..], "yes\n"), ("as the account", &["--account", ACCOUNT], "no\n")]
    {
        let server = format!(
            "if (: </dev/tty) 2>/dev/null; then echo yes; else echo no; fi >{0}; chmod 666 {0}; (echo written >&9) 2>/dev/null; exec {1}",
            terminal.display(),
            fixture_server().display()
        );
        let config = format!("[servers.t]\ncommand = \"sh\"\nargs = {}\n", serde_json::json!(["-c", server]));
        service.lockhouse.file("etc/config.toml", config);
        let _ = std::fs::remove_file(&terminal);
        let mut inner = service.command(options, &["tools", "list"]);
        if options.is_empty() {
            // The state directory belongs to the account.
            inner.args(["--trust-owner", ACCOUNT]);
        }
        let inherited = std::fs::File::create(&kept).unwrap();
        let mut with_descriptor = Command::new("bash");
        let open = format!("exec \"$0\" \"$@\" 9>>{}", kept.display());
        with_descriptor.args(["-c", &open]).arg(inner.get_program()).args(inner.get_args());
        with_descriptor.env_clear().current_dir("/");
        with_descriptor.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let listed = CommandOutput::run(&mut on_terminal(&with_descriptor), b"");
        table.row(format!("{name}: it runs"), ensure(listed.stdout.contains("echo"), &listed));
        let found = std::fs::read_to_string(&terminal).unwrap_or_default();
        table.row(format!("{name}: the terminal"), equal(found.as_str(), has_terminal));
        let written = std::fs::read_to_string(&kept).unwrap();
        table.row(format!("{name}: an open file"), equal(written.is_empty(), !options.is_empty()));
        drop(inherited);
    }
    table.finish();
}

#[test]
fn the_account_itself_can_change_nothing_of_root() {
    let Some(service) = Service::new() else { return };
    let mut table = Table::new("what is refused");
    let before = (service.read("etc/config.toml"), service.read("etc/policy.toml"));
    let own = service.command(&[], &["policy", "deny", "t.add"]);
    let mut command = Command::new("setpriv");
    let id = service.account.uid.to_string();
    command.args(["--reuid", &id, "--clear-groups", "--regid", &service.account.gid.to_string()]);
    command.arg(own.get_program()).args(own.get_args()).env_clear().current_dir("/");
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let refused = CommandOutput::run(&mut command, b"");
    let says_why = refused.status != Some(0) && refused.stderr.contains("Permission denied");
    table.row("the account without root", ensure(says_why, &refused));
    command.args(["--account", "root"]);
    let refused = CommandOutput::run(&mut command, b"");
    table.row("another account", ensure(refused.stderr.contains("only root can run a command"), &refused));
    let unknown =
        CommandOutput::run(&mut service.command(&["--account", "no-such"], &["token", "list"]), b"");
    table.row("an unknown account", ensure(unknown.stderr.contains("there is no account no-such"), &unknown));
    for arguments in [&["setup", "--yes"][..], &["setup", "--undo", "--yes"], &["init", "--yes"]] {
        let refused = service.run(arguments);
        let says_why = refused.status == Some(2) && refused.stderr.contains("a service has none");
        table.row(format!("{arguments:?}"), ensure(says_why, &refused));
    }
    let into = service.lockhouse.path("etc/requirements.toml").display().to_string();
    let refused = service.run(&["policy", "suggest", "--from-audit", "--force", "-o", &into]);
    table.row("another file of root", ensure(refused.status != Some(0), &refused));
    table.row(
        "is as it was",
        equal(service.read("etc/requirements.toml").as_str(), "# of the administrator\n"),
    );
    chown(service.lockhouse.path("etc"), Some(service.account.uid.as_raw()), None).unwrap();
    let refused = service.run(&["policy", "deny", "t.add"]);
    table.row("a directory of the account", ensure(refused.status != Some(0), &refused));
    table.row(
        "nothing is changed",
        equal((service.read("etc/config.toml"), service.read("etc/policy.toml")), before),
    );
    table.finish();
}
