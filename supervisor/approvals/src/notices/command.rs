//! Sends notices to a program, over its standard input.

use std::process::Stdio;

use lockhouse_base::process_group;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::runtime::Handle;

use super::DeliveryError;
use super::message::Message;

/// The variables of the environment that the program gets: what it needs to find other programs and the user's desktop.
const VARIABLES: [&str; 9] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
];

/// Runs a program with a message. When the program has ended or this future is dropped, kills what it left running.
pub(super) async fn run(command: &[String], message: &Message) -> Result<(), DeliveryError> {
    let Some((program, arguments)) = command.split_first() else { return Ok(()) };
    let variables = VARIABLES.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    let mut process = Command::new(program);
    process.args(arguments).env_clear().envs(variables).current_dir("/").process_group(0);
    process.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = process.spawn()?;
    let _group = child.id().map(|id| ProcessGroup(Pid::from_raw(id as i32)));
    if let Some(mut input) = child.stdin.take() {
        // A program that does not read its input may end first.
        let _ = input.write_all(message.body.as_bytes()).await;
    }
    match child.wait().await? {
        status if status.success() => Ok(()),
        status => Err(DeliveryError::Exit(status)),
    }
}

/// The processes of a program. They are killed when this value is dropped.
struct ProcessGroup(Pid);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        let group = self.0;
        let _ = killpg(group, Signal::SIGKILL);
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(process_group::reap(group));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn nothing_of_a_program_runs_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("pid");
        let message = Message { id: "msg_1".into(), body: "{}".into() };
        let run_shell = async |script: String| run(&["/bin/sh".into(), "-c".into(), script], &message).await;
        let left = format!("sleep 1000 & echo $! > {}", file.display());
        run_shell(left).await.expect("it ends with status 0");
        let pid: i32 = std::fs::read_to_string(&file).expect("a pid").trim().parse().expect("a number");
        let is_gone = || nix::sys::signal::kill(Pid::from_raw(pid), None).is_err();
        for _ in 0..200 {
            if is_gone() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // Only a subreaper has the orphan as a child; otherwise init reaps it.
        assert!(is_gone() || state.contains(") Z "), "{state}");
        let stopped = tokio::time::timeout(Duration::from_millis(200), run_shell("sleep 1000".into())).await;
        assert!(stopped.is_err(), "control: it would run on");
    }

    #[tokio::test]
    async fn a_program_gets_the_message_and_few_variables() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("seen");
        let message = Message { id: "msg_1".into(), body: r#"{"type": "t"}"#.into() };
        let script = format!("cat > {0}; echo >> {0}; env | cut -d= -f1 >> {0}", file.display());
        run(&["/bin/sh".into(), "-c".into(), script], &message).await.expect("it ends with status 0");
        let seen = std::fs::read_to_string(&file).expect("a file");
        let (body, names) = seen.split_once('\n').expect("two parts");
        assert_eq!(body, message.body);
        let of_shell = ["PWD", "OLDPWD", "SHLVL", "_"];
        let others: Vec<&str> =
            names.lines().filter(|name| !VARIABLES.contains(name) && !of_shell.contains(name)).collect();
        assert!(names.contains("PATH") && others.is_empty(), "{others:?}");
    }
}
