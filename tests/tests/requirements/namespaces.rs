//! The table of what happens in a namespace of the user's own: there, a user decides what `/etc` is.

use std::process::Command;

use lockhouse_tests::{CommandOutput, Table, ensure};

use super::{can_mount, lockhouse, managed, require};

/// What a user's attempt leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// The requirements apply.
    Holds,
    /// Lockhouse runs nothing, since the host was managed before.
    Refused,
    /// No requirement applies: the process sees another host.
    Lifted,
}

#[test]
fn a_namespace_of_the_users_own_hides_requirements_only_with_the_marker() {
    if !can_mount() {
        return;
    }
    let lockhouse = lockhouse();
    std::fs::create_dir(lockhouse.path("empty")).unwrap();
    require(&lockhouse, "stop = \"incident 7\"\n");
    lockhouse.file("var/lockhouse-managed", "");
    let empty = lockhouse.path("empty").display().to_string();
    let hide = |directory: &str| format!("mount --bind {empty} {directory} && ");
    let can_map = Command::new("unshare").args(["--user", "--map-root-user", "true"]).status();
    let can_map = can_map.is_ok_and(|status| status.success());
    let run = |namespaces: &str, hidden: &str| {
        let inner = lockhouse.command(&["config", "check"]);
        let mut command = Command::new("unshare");
        command.args(namespaces.split(' ')).args(["sh", "-c", &format!("{hidden}exec \"$@\""), "sh"]);
        command.arg(inner.get_program()).args(inner.get_args());
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = CommandOutput::run(&mut managed(&lockhouse, &command), b"");
        let effect = match &output {
            output if output.stdout.contains("requirements.toml has stopped Lockhouse") => Effect::Holds,
            output if output.stderr.contains("this host was managed") => Effect::Refused,
            output if output.stdout.contains("1 server can be used") => Effect::Lifted,
            output => panic!("{output:?}"),
        };
        (effect, output)
    };
    let (file, both) = (hide("/etc/lockhouse"), hide("/etc/lockhouse") + &hide("/var/lib"));
    let (mount, user) = ("--mount", "--user --map-root-user --mount");
    let mut table = Table::new("requirements in a namespace of the user's own");
    for (what, namespaces, hidden, expected) in [
        ("a mount namespace that hides nothing", mount, "", Effect::Holds),
        ("a mount namespace that hides the file", mount, &*file, Effect::Refused),
        ("a mount namespace that hides file and marker", mount, &*both, Effect::Lifted),
        ("a user namespace that hides nothing", user, "", Effect::Holds),
        ("a user namespace that hides the file", user, &*file, Effect::Refused),
        ("a user namespace that hides file and marker", user, &*both, Effect::Lifted),
    ] {
        if namespaces == user && !can_map {
            println!("skipped: no user namespace: {what}");
            continue;
        }
        let (effect, output) = run(namespaces, hidden);
        table.row(format!("{what}: {expected:?}"), ensure(effect == expected, &output));
    }
    table.finish();
}
