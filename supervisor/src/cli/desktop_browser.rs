//! Opens an address of this process in the browser of the desktop.

use std::io::IsTerminal;
use std::process::Stdio;

use lockhouse_base::browser_opening::OPEN_PATH;

/// Environment variables of which one is set in a desktop session.
const DESKTOP_VARIABLES: [&str; 2] = ["DISPLAY", "WAYLAND_DISPLAY"];

/// Whether a person sees the output of this command in a desktop session.
pub(super) fn is_available() -> bool {
    std::io::stdout().is_terminal() && DESKTOP_VARIABLES.iter().any(|name| std::env::var_os(name).is_some())
}

/// Opens [`OPEN_PATH`] at this port of `localhost` in the browser. Every account of this host can read the address in
/// the arguments of the programs that open it, so it has no secret.
pub(super) fn open(port: u16) {
    let address = format!("http://localhost:{port}{OPEN_PATH}");
    let mut command = tokio::process::Command::new("xdg-open");
    let command = command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        // tokio reaps the process.
        Ok(child) => drop(child),
        Err(error) => {
            eprintln!("lockhouse: the browser cannot be opened (xdg-open: {error}); open the link yourself")
        }
    }
}
