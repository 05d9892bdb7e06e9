//! The Unix domain sockets of an HTTP server whose front is a process of its own. The engine's process opens them and
//! accepts their connections.

use lockhouse_base::listen::{ListenAddress, Listener, Socket, SocketFile};
use tokio::net::UnixListener;

use super::accept::REFUSALS_MAX;
use super::listener::{adopt, bind_at, inherited_duplicates};
use super::{HttpSettings, HttpStartError, has_systemd_sockets};

/// The Unix domain sockets of an HTTP server, in the order of the addresses at which it listens.
#[derive(Debug)]
pub struct UnixSockets {
    pub listeners: Vec<UnixListener>,
    /// The files of the sockets that this process has created.
    pub files: UnixSocketFiles,
    /// Maximum number of connections that the front has open at one time, with those that it is refusing.
    pub connections_max: usize,
}

/// The files of Unix domain sockets. Dropping this value removes them.
#[derive(Debug)]
pub struct UnixSocketFiles(#[expect(dead_code, reason = "dropping it removes the files")] Vec<SocketFile>);

impl UnixSockets {
    /// Opens the Unix domain sockets among the configured ones, or duplicates those that systemd passed. The front checks
    /// all of the settings.
    ///
    /// # Errors
    /// This process cannot listen at one of the addresses.
    pub async fn open(settings: &HttpSettings) -> Result<Self, HttpStartError> {
        let mut opened = Vec::new();
        if has_systemd_sockets() {
            // The front reports those that cannot be used.
            opened.extend(inherited_duplicates().into_iter().filter_map(|socket| adopt(socket).ok()));
        } else {
            let is_unix = |address: &&ListenAddress| matches!(address, ListenAddress::Unix(_));
            for address in settings.listen.iter().filter(is_unix) {
                opened.push(bind_at(address).await?);
            }
        }
        let (mut listeners, mut files) = (Vec::new(), Vec::new());
        for Listener { socket, file, .. } in opened {
            if let Socket::Unix(listener) = socket {
                listeners.push(listener);
                files.extend(file);
            }
        }
        let connections_max = settings.limits.connections + 2 * REFUSALS_MAX;
        Ok(Self { listeners, files: UnixSocketFiles(files), connections_max })
    }
}
