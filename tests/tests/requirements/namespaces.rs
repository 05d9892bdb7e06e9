//! The table of what happens in a root or mount namespace of the user's own, where the user decides what `/etc` is, and with
//! programs that the user has changed. Each row says what holds and what does not: see *What a user can still do* in
//! `docs/configuration.md`.

mod host;
mod programs;

use std::collections::BTreeMap;
use std::path::PathBuf;

use lockhouse_tests::{Lockhouse, Table, ensure};

use super::can_mount;
use host::Host;
use programs::{copy, patched_copy, preloaded};

/// What a user's attempt leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// The requirements apply.
    Holds,
    /// Lockhouse runs nothing, since the host was managed before.
    Refused,
    /// No requirement applies: the process sees another host, or is another program.
    Lifted,
}
use Effect::{Holds, Lifted, Refused};

/// The kind of an attempt. If one is not possible on a host, at least another one of its kind must be.
const NAMESPACE: &str = "namespace";
const PROGRAM: &str = "program";

/// One attempt, and what it leads to.
#[derive(Clone)]
struct Attempt {
    kind: &'static str,
    what: &'static str,
    /// Whether root makes it, and not the user.
    is_root: bool,
    /// What the shell does: it ends with the program and its arguments. `ROOT` is the directory of the test, and `PYTHON` are
    /// options of bubblewrap that keep the settings of Python in `/etc`.
    steps: String,
    /// Makes another program. `None` for the installed one.
    program: fn(&Lockhouse) -> Option<PathBuf>,
    expected: Effect,
}

fn installed(_: &Lockhouse) -> Option<PathBuf> {
    None
}

/// Attempts of root, which show what every user could do who may mount. `hidden` are steps in the namespace.
fn mounts() -> Vec<Attempt> {
    let (mount, user) = ("-m", "-r -m");
    const FILE: &str = "mount --bind ROOT/empty /etc/lockhouse && ";
    const MARKER: &str = "mount --bind ROOT/empty /var/lib && ";
    let (etc, var) = ("mount -t tmpfs none /etc && ", "mount -t tmpfs none /var/lib && ");
    let jail = "mount --rbind / ROOT/jail && ";
    let (jail_etc, jail_var) =
        ("mount -t tmpfs none ROOT/jail/etc && ", "mount -t tmpfs none ROOT/jail/var/lib && ");
    let enter = "chroot ROOT/jail ";
    let attempt = |(what, namespaces, hidden, expected): (_, _, &[&str], _)| Attempt {
        kind: NAMESPACE,
        what,
        is_root: true,
        steps: format!("unshare {namespaces} sh -c '{}\"$@\"' sh \"$@\"", hidden.concat()),
        program: installed,
        expected,
    };
    let rows: [(&str, &str, &[&str], Effect); 13] = [
        ("mount namespace: nothing is hidden", mount, &[], Holds),
        ("mount namespace: the file is hidden", mount, &[FILE], Refused),
        ("mount namespace: file and marker are hidden", mount, &[FILE, MARKER], Lifted),
        ("user namespace: nothing is hidden", user, &[], Holds),
        ("user namespace: the file is hidden", user, &[FILE], Refused),
        ("user namespace: file and marker are hidden", user, &[FILE, MARKER], Lifted),
        ("user namespace: tmpfs over /etc", user, &[etc], Refused),
        ("user namespace: tmpfs over /etc and /var/lib", user, &[etc, var], Lifted),
        ("user namespace: an own /etc", user, &["mount --bind ROOT/own-etc /etc && "], Lifted),
        ("user namespace: an own /var/lib", user, &[MARKER], Holds),
        ("chroot: the same /etc", user, &[jail, enter], Holds),
        ("chroot: without /etc", user, &[jail, jail_etc, enter], Refused),
        ("chroot: without /etc and /var/lib", user, &[jail, jail_etc, jail_var, enter], Lifted),
    ];
    rows.into_iter().map(attempt).collect()
}

/// Attempts of the user with bubblewrap. The root is mounted read-only, as Lockhouse demands in a user namespace.
fn bubblewrap() -> Vec<Attempt> {
    let attempt = |(what, options, expected)| Attempt {
        kind: NAMESPACE,
        what,
        is_root: false,
        steps: format!("bwrap --unshare-user --ro-bind / / --dev /dev --proc /proc {options} \"$@\""),
        program: installed,
        expected,
    };
    let rows = [
        ("bwrap: nothing is hidden", "", Holds),
        ("bwrap: tmpfs over /etc", "--tmpfs /etc PYTHON", Refused),
        ("bwrap: tmpfs over /etc and /var/lib", "--tmpfs /etc PYTHON --tmpfs /var/lib", Lifted),
        ("bwrap: an own /etc", "--ro-bind ROOT/own-etc /etc", Lifted),
        ("bwrap: an own /var/lib", "--tmpfs /var/lib", Holds),
    ];
    rows.into_iter().map(attempt).collect()
}

/// Attempts of the user with another program than the installed one.
fn programs() -> Vec<Attempt> {
    let rows: [(_, &str, fn(&Lockhouse) -> Option<PathBuf>, _); 4] = [
        ("the installed one", "", installed, Holds),
        ("a copy", "", copy, Holds),
        ("a copy that looks elsewhere", "", patched_copy, Lifted),
        ("a library of LD_PRELOAD hides the files", "LD_PRELOAD=\"$PRELOADED\" ", preloaded, Lifted),
    ];
    let attempt = |(what, before, program, expected)| {
        let steps = format!("{before}\"$@\"");
        Attempt { kind: PROGRAM, what, is_root: false, steps, program, expected }
    };
    rows.into_iter().map(attempt).collect()
}

#[test]
fn what_a_user_decides_in_namespaces_and_with_other_programs() {
    if !can_mount() {
        return;
    }
    let host = Host::new();
    let mut table = Table::new("requirements where the user decides what the host is");
    let (mut run, mut impossible) = (BTreeMap::<&str, usize>::new(), Vec::new());
    for attempt in [mounts(), bubblewrap(), programs()].concat() {
        let Attempt { kind, what, expected, .. } = attempt;
        match host.run(&attempt) {
            Ok((effect, output)) => {
                *run.entry(kind).or_default() += 1;
                table.row(format!("{kind}: {what}: {expected:?}"), ensure(effect == expected, &output));
            }
            Err(reason) => impossible.push((kind, what, reason)),
        }
    }
    for (kind, what, reason) in impossible {
        let reason = if reason.contains("not found") { "not installed" } else { reason.trim() };
        table.row(format!("{kind}: {what}: not tried: {reason}"), ensure(run.contains_key(kind), reason));
    }
    for (kind, count) in run {
        table.row(format!("attempts of the kind {kind}: {count}"), Ok(()));
    }
    table.finish();
}
