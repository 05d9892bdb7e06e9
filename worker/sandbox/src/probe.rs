//! Self-test of the sandbox: a test worker without code applies each layer and then attempts what that layer
//! must refuse. A layer counts as effective only if the kernel refuses the attempt; a successful setup is not
//! enough.
#![allow(unsafe_code, reason = "fork, and system calls made past their wrappers")]

mod attempts;

use std::io::Read;
use std::os::fd::OwnedFd;

use lockhouse_protocol::{Finding, Protection, SandboxProfile, frame};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

use super::{Layer, PreparedSandbox, SandboxError, die_with_parent, enter_observed, landlock};
use attempts::{Attempt, LandlockAttempts};

/// Maximum size in bytes of the test worker's report, which contains the findings about all protections.
const REPORT_BYTES_MAX: u32 = 64 * 1024;

/// Forks a test worker that applies the sandbox to itself, and reports whether each protection is effective.
///
/// # Errors
/// [`SandboxError`] if the test worker cannot be created, or ends without a report.
pub fn probe(prepared: &PreparedSandbox, profile: &SandboxProfile) -> Result<Vec<Finding>, SandboxError> {
    let (mut reader, writer) = std::io::pipe().map_err(SandboxError::step("pipe"))?;
    let zygote = nix::unistd::getpid();
    // SAFETY: the zygote has one thread, which it has asserted; the child reports and ends.
    let child = match unsafe { fork() }.map_err(SandboxError::errno("fork"))? {
        ForkResult::Child => run_probe(prepared, profile, zygote, writer.into()),
        ForkResult::Parent { child } => child,
    };
    drop(writer);
    let pidfd = attempts::pidfd(child);
    let mut report = Vec::new();
    let mut limited = (&mut reader).take(REPORT_BYTES_MAX.into());
    limited.read_to_end(&mut report).map_err(SandboxError::step("read the probe's report"))?;
    let end = waitpid(child, None).map_err(SandboxError::errno("wait for the probe"))?;
    let mut findings: Vec<Finding> = frame::decode(&report, REPORT_BYTES_MAX).map_err(|_| {
        SandboxError::step("probe")(std::io::Error::other(format!("it ended early: {end:?}")))
    })?;
    findings.push(pidfd);
    findings.push(attacks_end_it(end));
    Ok(findings)
}

/// Checks that seccomp killed the test worker at its last system call, `ptrace`, which only an attack makes.
fn attacks_end_it(end: WaitStatus) -> Finding {
    let protection = Protection::KillOnAttack;
    match end {
        WaitStatus::Signaled(_, nix::sys::signal::Signal::SIGSYS, _) => {
            Finding::holds(protection, "ptrace ended the process (SIGSYS)")
        }
        end => Finding::broken(protection, format!("ptrace did not end the process: {end:?}")),
    }
}

fn run_probe(prepared: &PreparedSandbox, profile: &SandboxProfile, zygote: Pid, writer: OwnedFd) -> ! {
    // In a separate PID namespace, the zygote's number is unchanged.
    let _ = die_with_parent(zygote);
    let mut findings = attempts::before_the_seal(prepared, profile);
    let mut observed = LandlockAttempts::default();
    let entered = enter_observed(prepared, profile, writer, &mut |layer| {
        findings.extend(after(layer, profile, &mut observed));
    });
    let channel = match entered {
        Ok((_, channel)) => Some(channel),
        Err((protection, error, channel)) => {
            findings.push(Finding::absent(protection, error.to_string()));
            channel
        }
    };
    if let (Some(channel), Ok(report)) = (channel, frame::encode(&findings, REPORT_BYTES_MAX)) {
        let _ = nix::unistd::write(&channel, &report);
    }
    // SAFETY: no pointers. Under the seal this ends the process; otherwise it asks to be traced, and then ends.
    unsafe {
        libc::syscall(libc::SYS_ptrace, libc::PTRACE_TRACEME, 0, 0, 0);
        libc::_exit(0)
    }
}

/// Attempts what a layer must refuse, immediately after the layer was applied, and returns the findings. Before
/// Landlock, stores the results of its attempts in `observed`, for comparison with those afterwards.
fn after(layer: Layer, profile: &SandboxProfile, observed: &mut LandlockAttempts) -> Vec<Finding> {
    match layer {
        Layer::Namespaces | Layer::Privileges => Vec::new(),
        Layer::Descriptors => vec![attempts::descriptors()],
        Layer::Limits => vec![attempts::limits(profile)],
        Layer::Hardening => vec![attempts::not_dumpable(), attempts::no_new_privileges()],
        Layer::Mdwe => {
            // Positive controls: these attempts must succeed before Landlock is applied.
            *observed = LandlockAttempts::now();
            vec![attempts::write_xor_execute()]
        }
        Layer::Landlock => after_landlock(observed),
        Layer::Seccomp => vec![attempts::system_calls()],
    }
}

fn after_landlock(before: &LandlockAttempts) -> Vec<Finding> {
    let (version, now) = (landlock::version(), LandlockAttempts::now());
    let judge = |protection, since: i64, linux, attempt: fn(&LandlockAttempts) -> Attempt, words: &str| {
        if version < since {
            return Finding::absent(
                protection,
                format!("Landlock ABI {version}; for {words} it takes ABI {since} (Linux {linux})"),
            );
        }
        match (attempt(before), attempt(&now)) {
            (Attempt::Succeeded, Attempt::Refused(libc::EACCES | libc::EPERM)) => {
                Finding::holds(protection, format!("ABI {version}: {words} refused"))
            }
            (before, now) => {
                Finding::broken(protection, format!("{words}: {before} without Landlock, {now} with it"))
            }
        }
    };
    vec![
        judge(Protection::LandlockFiles, 1, "5.13", |at| at.open, "files"),
        judge(Protection::LandlockTcp, landlock::TCP, "6.7", |at| at.bind, "TCP"),
        judge(
            Protection::LandlockScopes,
            landlock::SCOPES,
            "6.12",
            |at| at.signal,
            "signals and abstract sockets",
        ),
    ]
}
