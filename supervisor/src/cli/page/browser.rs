//! Prints the link to the page, and opens the page in a browser.

use std::io::IsTerminal;
use std::sync::Arc;

use lockhouse_page::{Access, Listener, NoRandomNumbers, Viewer};

use crate::cli::approvals::keyboard::Keyboard;
use crate::cli::desktop_browser;

/// Prints links to the page.
pub(super) struct LinkPrinter {
    access: Arc<Access>,
    viewer: Viewer,
    address: String,
    /// `None` if the page listens on a Unix domain socket.
    port: Option<u16>,
}

impl LinkPrinter {
    pub(super) fn new(access: Arc<Access>, viewer: Viewer, listener: &Listener) -> Self {
        Self { access, viewer, address: listener.address(), port: listener.port() }
    }

    /// Creates a link and prints it.
    pub(super) fn print(&self) -> Result<(), NoRandomNumbers> {
        let path = self.access.create_link(self.viewer.clone())?.path();
        if self.port.is_none() {
            eprintln!("The page listens at {}. Forward a port to it, and open with that port:", self.address);
            println!("http://localhost:PORT{path}");
            return Ok(());
        }
        println!("http://{}{path}", self.address);
        if std::io::stdout().is_terminal() {
            eprintln!(
                "The link works once, for a short time. Press Enter for a new one, and Ctrl-C to end the page."
            );
        }
        Ok(())
    }

    /// Opens the page in a browser if this is a desktop session and standard output is a terminal.
    pub(super) fn open_browser(&self) {
        if let Some(port) = self.port.filter(|_| desktop_browser::is_available()) {
            self.access.await_browser(self.viewer.clone());
            desktop_browser::open(port);
        }
    }

    /// Prints a new link each time a person presses Enter. Never returns.
    pub(super) async fn print_on_enter(&self) {
        if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
            let mut keyboard = Keyboard::new();
            while keyboard.next_line().await.is_some() {
                if let Err(error) = self.print() {
                    eprintln!("lockhouse: no link can be created: {error}");
                }
            }
        }
        std::future::pending().await
    }
}
