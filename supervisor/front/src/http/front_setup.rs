//! What the engine's process sends the front's process at its start, over the setup channel: the settings of the HTTP server,
//! and the sockets. The front reads no file of the configuration.

use std::io::{ErrorKind, Result};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use lockhouse_base::listen::ListenAddress;
use serde::{Deserialize, Serialize};

use super::{HttpSettings, HttpSockets, OpenSocket, ServedCertificate};

/// The first message to a front's process.
#[derive(Debug, Serialize, Deserialize)]
pub struct FrontSetup {
    pub(super) settings: HttpSettings,
    /// Whether the front speaks TLS. A certificate then follows.
    pub(super) has_tls: bool,
    pub(super) is_socket_activated: bool,
    /// Where the connections of AI clients come from. Each has one descriptor, in this order, after the front's end of the
    /// connection to the engine.
    pub(super) clients: Vec<InheritedSource>,
    /// The listening sockets at the addresses of `[metrics]`, whose descriptors come last.
    pub(super) metrics: Vec<InheritedSource>,
}

/// A later message to a front's process.
#[derive(Debug, Serialize, Deserialize)]
pub enum FrontUpdate {
    /// The certificate for new connections. Its descriptor is the front's end of a connection to the signer.
    Certificate(ServedCertificate),
    /// Another front takes the place of this one: it accepts no further connection, and ends when its connections have ended.
    Retire,
}

/// A source of connections that the front's process inherits, and its listen address.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct InheritedSource {
    pub(super) address: ListenAddress,
    pub(super) kind: SourceKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum SourceKind {
    /// A listening socket.
    Listener,
    /// The end of a pair over which the engine's process passes the connections.
    PassedConnections,
}

/// The descriptors of a [`FrontSetup`], in the order in which they are sent.
#[derive(Debug)]
pub(super) struct SetupDescriptors(std::vec::IntoIter<OwnedFd>);

impl FrontSetup {
    pub fn new(settings: &HttpSettings, sockets: &HttpSockets) -> Self {
        let source = |socket: &OpenSocket| InheritedSource {
            address: socket.address.clone(),
            kind: match socket.inherited_socket() {
                Some(_) => SourceKind::Listener,
                None => SourceKind::PassedConnections,
            },
        };
        Self {
            settings: settings.clone(),
            has_tls: settings.tls.is_some(),
            is_socket_activated: sockets.is_socket_activated,
            clients: sockets.clients.iter().map(source).collect(),
            metrics: sockets.metrics.iter().map(source).collect(),
        }
    }

    /// Returns the descriptors to send. `link` is the front's end of the connection to the engine, and `passed` has the front's
    /// ends of the pairs for the sockets at which the engine's process accepts the connections.
    pub fn descriptors<'d>(
        sockets: &'d HttpSockets,
        link: &'d OwnedFd,
        passed: &'d [OwnedFd],
    ) -> Vec<BorrowedFd<'d>> {
        let mut passed = passed.iter().map(AsFd::as_fd);
        let sources = sockets.clients.iter().chain(&sockets.metrics);
        let sources = sources.filter_map(|socket| socket.inherited_socket().or_else(|| passed.next()));
        std::iter::once(link.as_fd()).chain(sources).collect()
    }
}

impl SetupDescriptors {
    pub(super) fn new(descriptors: Vec<OwnedFd>) -> Self {
        Self(descriptors.into_iter())
    }

    /// Returns the next descriptor.
    ///
    /// # Errors
    /// There is none: this process could not take them all.
    pub(super) fn take(&mut self) -> Result<OwnedFd> {
        self.0.next().ok_or_else(|| ErrorKind::InvalidData.into())
    }
}
