//! The table of the sandbox protections of workers: what each protection defends against, whether it is required, and
//! how an administrator enables it.
//!
//! Zygotes test the protections and report [`Finding`]s; [`evaluate`] decides whether code may run. `lockhouse doctor`
//! shows the same table.

use lockhouse_protocol::{Finding, Protection, Verdict};

/// The description of one sandbox protection, for users.
#[derive(Debug)]
pub struct ProtectionInfo {
    /// The name of the protection.
    pub title: &'static str,
    /// Whether the protection is required. On a host without a required protection, Lockhouse runs no code. On a host
    /// without an optional protection, code runs, and the protection level is `reduced`.
    pub required: bool,
    /// The other sandbox layers that stop the same attacks if this protection is missing or has a bug.
    pub second_layer: &'static str,
    /// What an attacker who executes native code in a worker gains if this protection is missing.
    pub gain: &'static str,
    /// What an administrator does to enable this protection.
    pub fix: &'static str,
}

/// What an administrator does to enable the protections that seccomp provides.
const SECCOMP_FIX: &str =
    "boot a kernel with CONFIG_SECCOMP_FILTER; in a container, let its own profile permit seccomp(2)";
/// What an administrator does to enable the protections that namespaces provide.
const NAMESPACES_FIX: &str = "sysctl user.max_user_namespaces above 0; on Ubuntu 23.10 and later install \
    packaging/apparmor/lockhouse, or sysctl kernel.apparmor_restrict_unprivileged_userns=0; in a container, permit unshare";
/// The advice for a missing protection that every supported host should provide.
const REPORT: &str = "do not use Lockhouse on this host, and report this";

/// Why Lockhouse runs no code on this host.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ProtectionError {
    /// A required protection is missing on this host.
    #[error(
        "this host does not give a required protection: {title}: {found}{}. To have it: {fix}",
        if *.required_here { ", and full protection is required" } else { "" }
    )]
    Absent {
        title: &'static str,
        found: String,
        /// Whether the protection is optional by default, and required only because of `require_full` in the
        /// configuration.
        required_here: bool,
        fix: &'static str,
    },
    /// A protection is enabled, but a test showed that it does not work, or the test could not be run.
    #[error("a protection does not hold: {title}: {found}. {}", capitalize(REPORT))]
    Broken { title: &'static str, found: String },
}

/// Returns the description of a protection.
#[expect(clippy::too_many_lines, reason = "a table of all protections")]
pub fn describe(protection: Protection) -> ProtectionInfo {
    let row = |title, required, second_layer, gain, fix| ProtectionInfo {
        title,
        required,
        second_layer,
        gain,
        fix,
    };
    match protection {
        Protection::SystemCalls => row(
            "system-call filter",
            true,
            "Landlock, namespaces",
            "the whole interface of the kernel: sockets, processes, and every bug behind them",
            SECCOMP_FIX,
        ),
        Protection::KillOnAttack => row(
            "attack calls are fatal",
            true,
            "they are refused as well",
            "as many tries as it likes",
            SECCOMP_FIX,
        ),
        Protection::NoNewPrivileges => row(
            "no new privileges",
            true,
            "execve is filtered",
            "set-user-id programs, if it could execute",
            REPORT,
        ),
        Protection::OrdinaryUser => row(
            "an ordinary user",
            true,
            "no capabilities",
            "root's files, where another layer lets it see them",
            "set unprivileged_id under [pool] to a user who owns nothing, or start Lockhouse as an ordinary user",
        ),
        Protection::NoCapabilities => {
            row("no capabilities", true, "system-call filter", "administration of the host", REPORT)
        }
        Protection::NotDumpable => row(
            "not dumpable",
            true,
            "ptrace is filtered; Yama where it is on",
            "other workers' memory, through ptrace or /proc",
            REPORT,
        ),
        Protection::LandlockFiles => row(
            "Landlock: files",
            true,
            "system-call filter, empty root",
            "files, after a bug in the filter",
            "boot Linux 5.13 or later with landlock in the lsm= parameter; in a container, let its profile permit landlock_*",
        ),
        Protection::LandlockTcp => row(
            "Landlock: TCP",
            false,
            "system-call filter, network namespace",
            "TCP, after a bug in the filter",
            "boot Linux 6.7 or later",
        ),
        Protection::LandlockScopes => row(
            "Landlock: signals, abstract sockets",
            false,
            "system-call filter",
            "signals to its own user's processes, after a bug in the filter",
            "boot Linux 6.12 or later",
        ),
        Protection::EmptyRoot => row(
            "namespaces, empty root",
            false,
            "system-call filter, Landlock",
            "names of files (stat), unix sockets by path, after a bug in the filter",
            NAMESPACES_FIX,
        ),
        Protection::NoNetwork => row(
            "network namespace",
            false,
            "system-call filter, Landlock for TCP",
            "UDP, netlink and raw sockets, after a bug in the filter",
            NAMESPACES_FIX,
        ),
        Protection::WriteXorExecute => row(
            "no new executable memory",
            false,
            "system-call filter",
            "machine code of its own, after a bug in the filter",
            "boot Linux 6.3 or later",
        ),
        Protection::ResourceLimits => row(
            "resource limits",
            true,
            "control group, supervisor's clock",
            "the memory and the processors of the host",
            "raise the hard limits of the service that starts Lockhouse: workers lower them, and cannot raise them",
        ),
        Protection::Descriptors => row(
            "no inherited descriptors",
            true,
            "descriptors are made close-on-exec",
            "whatever the supervisor had open",
            "boot Linux 5.9 or later; in a container, let its profile permit close_range",
        ),
        Protection::Pidfd => row(
            "workers named by descriptor",
            true,
            "workers die with their zygote",
            "survival: a signal to its number could hit another process",
            "boot Linux 5.3 or later; in a container, let its profile permit pidfd_open and pidfd_send_signal",
        ),
        Protection::ControlGroup => row(
            "control group per worker",
            false,
            "resource limits",
            "threads and memory of kernel objects, at the cost of other workers",
            "run the service with Delegate=memory pids, or: systemd-run --user --scope -p Delegate=yes lockhouse serve",
        ),
    }
}

/// Decides from the findings of a zygote's sandbox tests whether code may run on this host. Returns texts for users
/// that describe the missing optional protections. With `require_full`, all protections are required.
///
/// # Errors
/// Fails if a required protection is missing, or if any protection is broken or was not tested. The error says how to
/// fix this.
pub fn evaluate(findings: &[Finding], require_full: bool) -> Result<Vec<String>, ProtectionError> {
    let not_tried = Protection::CHECKED_BY_ZYGOTE
        .into_iter()
        .filter(|protection| !findings.iter().any(|finding| finding.protection == *protection))
        .map(|protection| Finding::broken(protection, "it could not be tried"));
    let mut reduced = Vec::new();
    // Findings of the zygote come first, so that an error reports them before a protection that was not tested.
    for Finding { protection, verdict, found } in findings.iter().cloned().chain(not_tried) {
        let ProtectionInfo { title, required, fix, .. } = describe(protection);
        match verdict {
            Verdict::Holds => {}
            Verdict::Absent if !required && !require_full => reduced.push(found),
            Verdict::Absent => {
                return Err(ProtectionError::Absent { title, found, required_here: !required, fix });
            }
            Verdict::Broken => return Err(ProtectionError::Broken { title, found }),
        }
    }
    // Two protections can be missing for the same reason.
    reduced.dedup();
    Ok(reduced)
}

fn capitalize(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_protection_is_reported_with_its_fix() {
        let all = |found: Finding| {
            let others = Protection::CHECKED_BY_ZYGOTE.into_iter().filter(|other| *other != found.protection);
            others.map(|other| Finding::holds(other, "")).chain([found.clone()]).collect::<Vec<_>>()
        };
        let judged =
            |found, require_full| evaluate(&all(found), require_full).map_err(|error| error.to_string());
        let no_tcp = || Finding::absent(Protection::LandlockTcp, "no rules for TCP");
        assert_eq!(judged(no_tcp(), false), Ok(vec!["no rules for TCP".to_owned()]));
        let absent = "this host does not give a required protection: Landlock: TCP: no rules for TCP, and full protection \
            is required. To have it: boot Linux 6.7 or later";
        assert_eq!(judged(no_tcp(), true), Err(absent.to_owned()));
        let absent = "this host does not give a required protection: no capabilities: some are left. To have it: do not use \
            Lockhouse on this host, and report this";
        let found = Finding::absent(Protection::NoCapabilities, "some are left");
        assert_eq!(judged(found, true), Err(absent.to_owned()));
        let broken = "a protection does not hold: network namespace: it has an interface. Do not use Lockhouse on this host, \
            and report this";
        let found = Finding::broken(Protection::NoNetwork, "it has an interface");
        assert_eq!(judged(found, false), Err(broken.to_owned()));
        let untried = evaluate(&[], false).map_err(|error| error.to_string());
        assert!(untried.is_err_and(|why| why.contains("it could not be tried")));
    }
}
