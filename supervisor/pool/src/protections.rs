//! What each protection of a worker is for: which are required, what stands behind them, and what to do without them.
//!
//! The zygote tries, in [`Finding`]s, and this judges. `lockhouse doctor` shows the same table.

use lockhouse_protocol::{Finding, Protection, Verdict};

/// One row of the table.
#[derive(Debug)]
pub struct Described {
    pub title: &'static str,
    /// Without it no code runs. The others make the level `reduced` where they are absent.
    pub required: bool,
    /// What holds the same attacks.
    pub second_layer: &'static str,
    /// What an attacker with native code in a worker gains where it is missing.
    pub gain: &'static str,
    /// What an administrator does to have it.
    pub fix: &'static str,
}

const SECCOMP_FIX: &str =
    "boot a kernel with CONFIG_SECCOMP_FILTER; in a container, let its own profile permit seccomp(2)";
const NAMESPACES_FIX: &str = "sysctl user.max_user_namespaces above 0; on Ubuntu 23.10 and later install \
    packaging/apparmor/lockhouse, or sysctl kernel.apparmor_restrict_unprivileged_userns=0; in a container, permit unshare";
const REPORT: &str = "do not use Lockhouse on this host, and report this";

/// The table.
pub fn describe(protection: Protection) -> Described {
    let row =
        |title, required, second_layer, gain, fix| Described { title, required, second_layer, gain, fix };
    match protection {
        Protection::SystemCalls => row(
            "system-call filter",
            true,
            "Landlock, namespaces",
            "the whole interface of the kernel: sockets, processes, and every bug behind them",
            SECCOMP_FIX,
        ),
        Protection::AttacksEndIt => row(
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

/// What is not there and not required, in words.
///
/// # Errors
/// Why no code may run here, in words that name the fix.
pub fn judge(findings: &[Finding], require_full: bool) -> Result<Vec<String>, String> {
    let not_tried = Protection::OF_THE_ZYGOTE
        .into_iter()
        .filter(|protection| !findings.iter().any(|finding| finding.protection == *protection))
        .map(|protection| Finding::broken(protection, "it could not be tried"));
    let mut reduced = Vec::new();
    // What was found comes before what could then not be tried.
    for finding in findings.iter().cloned().chain(not_tried) {
        let described = describe(finding.protection);
        match finding.verdict {
            Verdict::Holds => {}
            Verdict::Absent if !described.required && !require_full => reduced.push(finding.found),
            Verdict::Absent => {
                let why = if described.required { "" } else { ", and full protection is required" };
                return Err(format!(
                    "this host does not give a required protection: {}: {}{why}. To have it: {}",
                    described.title, finding.found, described.fix
                ));
            }
            Verdict::Broken => {
                return Err(format!(
                    "a protection does not hold: {}: {}. {}",
                    described.title,
                    finding.found,
                    sentence(REPORT)
                ));
            }
        }
    }
    // Two protections can be missing for one reason.
    reduced.dedup();
    Ok(reduced)
}

fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
