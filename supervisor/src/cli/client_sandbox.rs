//! Whether this process may run in a sandbox, such as that of an AI client, in which another process would not be. It then uses
//! no shared engine, whose servers could do for it what the sandbox forbids, and starts no servers that others use. The setup
//! of an engine has what `/proc` shows of a process; this is the rest.

use std::process::Stdio;
use std::time::Duration;

use lockhouse_upstream::{LANDLOCK_LAYERS_MAX, has_landlock};
use tokio::process::Command;
use tokio::time::timeout;

/// Maximum time for the process that counts Landlock layers.
const COUNT_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns why this process may be in a sandbox of its own; `None` if it is not. What cannot be found out counts as a
/// sandbox.
pub(super) async fn find() -> Option<String> {
    match (filters("self"), filters("1")) {
        (Ok(0), _) => {}
        (Ok(own), Ok(first)) if own <= first => {}
        (Ok(own), Ok(first)) => {
            return Some(format!("it has {own} system-call filters, and process 1 has {first}"));
        }
        (Err(error), _) | (_, Err(error)) => {
            return Some(format!("the number of system-call filters is not known: {error}"));
        }
    }
    match landlock_room().await {
        Ok(LANDLOCK_LAYERS_MAX) => None,
        Ok(room) => {
            Some(format!("Landlock restricts it, in {} layers", LANDLOCK_LAYERS_MAX.saturating_sub(room)))
        }
        Err(error) => Some(format!("it is not known whether Landlock restricts it: {error}")),
    }
}

/// Returns the number of system-call filters of a process. On a kernel that does not tell it, a process with filters has
/// one.
fn filters(process: &str) -> std::io::Result<u32> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    let mode = || value("Seccomp:").map(|mode: u32| mode.min(1));
    Ok(value("Seccomp_filters:").or_else(mode).unwrap_or_default())
}

async fn landlock_room() -> std::io::Result<u32> {
    if !has_landlock()? {
        return Ok(LANDLOCK_LAYERS_MAX);
    }
    let mut command = Command::new("/proc/self/exe");
    command.arg0("lockhouse").arg("landlock-room").env_clear().current_dir("/");
    command.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = timeout(COUNT_TIMEOUT, command.output()).await??;
    let room = String::from_utf8_lossy(&output.stdout).trim().parse();
    room.map_err(|_| std::io::Error::other("the layers cannot be counted"))
}
