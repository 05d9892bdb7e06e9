//! Prints the link to the page, and opens it in a browser.

use std::io::IsTerminal;
use std::process::Stdio;
use std::sync::Arc;

use lockhouse_page::{Access, Listener, LoginLink, NoRandomNumbers, Viewer};

use crate::cli::approvals::keyboard::Keyboard;

/// Environment variables of which one is set in a desktop session.
const DESKTOP_VARIABLES: [&str; 2] = ["DISPLAY", "WAYLAND_DISPLAY"];

/// Prints links to the page.
pub(super) struct LinkPrinter {
    access: Arc<Access>,
    viewer: Viewer,
    /// The beginning of each link; `None` if the page listens on a Unix domain socket.
    base: Option<String>,
    address: String,
}

impl LinkPrinter {
    pub(super) fn new(access: Arc<Access>, viewer: Viewer, listener: &Listener) -> Self {
        let address = listener.address();
        let base = listener.port().map(|_| format!("http://{address}"));
        Self { access, viewer, base, address }
    }

    /// Creates a link and prints it. With `open`, opens it in a browser if this is a desktop session and standard
    /// output is a terminal.
    pub(super) fn print(&self, open: bool) -> Result<(), NoRandomNumbers> {
        let LoginLink { token } = self.access.create_link(self.viewer.clone())?;
        let path = format!("/#token={token}");
        let on_a_terminal = std::io::stdout().is_terminal();
        let Some(base) = &self.base else {
            eprintln!("The page listens at {}. Forward a port to it, and open with that port:", self.address);
            println!("http://localhost:PORT{path}");
            return Ok(());
        };
        println!("{base}{path}");
        if on_a_terminal {
            eprintln!(
                "The link works once, for a short time. Press Enter for a new one, and Ctrl-C to end the page."
            );
        }
        if open && on_a_terminal && DESKTOP_VARIABLES.iter().any(|name| std::env::var_os(name).is_some()) {
            open_browser(&format!("{base}{path}"));
        }
        Ok(())
    }

    /// Prints a new link each time a person presses Enter. Never returns.
    pub(super) async fn print_on_enter(&self) {
        if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
            let mut keyboard = Keyboard::new();
            while keyboard.next_line().await.is_some() {
                if let Err(error) = self.print(false) {
                    eprintln!("lockhouse: no link can be created: {error}");
                }
            }
        }
        std::future::pending().await
    }
}

/// Opens a link in the browser of the desktop. The link has a secret, which other processes of this user may see in the
/// arguments of the command until it is used.
fn open_browser(link: &str) {
    let mut command = tokio::process::Command::new("xdg-open");
    let command = command.arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        // tokio reaps the process.
        Ok(child) => drop(child),
        Err(error) => {
            eprintln!("lockhouse: the browser cannot be opened (xdg-open: {error}); open the link yourself")
        }
    }
}
