//! Sends notices to a program, over its standard input.

use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

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

/// Runs a program with a message. Ends the program if this future is dropped.
pub(super) async fn run(command: &[String], message: &Message) -> Result<(), DeliveryError> {
    let Some((program, arguments)) = command.split_first() else { return Ok(()) };
    let variables = VARIABLES.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    let mut process = Command::new(program);
    process.args(arguments).env_clear().envs(variables).current_dir("/");
    process.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = process.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A program that does not read its input may end first.
        let _ = input.write_all(message.body.as_bytes()).await;
    }
    match child.wait().await? {
        status if status.success() => Ok(()),
        status => Err(DeliveryError::Exit(status)),
    }
}
