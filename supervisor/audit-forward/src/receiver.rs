//! The connection to a destination.

use std::path::PathBuf;
use std::time::Instant;

use crate::acceptance::Acceptance;
use crate::delivery_error::DeliveryError;
use crate::destination::DestinationKind;
use crate::journald::Journal;
use crate::otlp::Collector;
use crate::segment_reader::Batch;
use crate::syslog::SyslogServer;
use crate::tls::TlsFiles;
use crate::{ForwardDestination, ForwardFormat, ForwardSettings};

/// A destination to which batches are sent.
#[derive(Debug)]
pub(crate) enum Receiver {
    Journald(Journal),
    Syslog(Box<SyslogServer>),
    Otlp(Box<Collector>),
}

impl Receiver {
    pub(crate) fn new(settings: &ForwardSettings, destination: &ForwardDestination) -> Self {
        let ForwardDestination { destination, credentials } = destination;
        let identity = credentials.identity.clone();
        let (format, ca): (ForwardFormat, Option<PathBuf>) = (settings.format, settings.ca.clone());
        match &destination.kind {
            DestinationKind::Journald(socket) => Self::Journald(Journal::new(socket.clone(), format)),
            DestinationKind::SyslogTls { host, port } => {
                let trust = TlsFiles { ca, identity };
                Self::Syslog(Box::new(SyslogServer::new(host.clone(), *port, trust, format)))
            }
            DestinationKind::Otlp(url) => {
                let tls = destination.uses_tls().then_some(TlsFiles { ca, identity });
                Self::Otlp(Box::new(Collector::new(url.clone(), tls, credentials.headers.clone())))
            }
        }
    }

    /// Sends a batch. Connects before, if there is no connection. After an error or if the future is dropped, the next
    /// batch is sent over a new connection.
    pub(crate) async fn send(&mut self, batch: &Batch) -> Result<Acceptance, DeliveryError> {
        match self {
            Self::Journald(journal) => journal.send(batch).await,
            Self::Syslog(server) => server.send(batch).await,
            Self::Otlp(collector) => collector.send(batch).await,
        }
    }

    /// Whether a batch that was sent at a time counts as delivered.
    ///
    /// # Errors
    /// The connection has broken: what does not count as delivered must be sent again.
    pub(crate) fn has_received(&mut self, sent: Instant) -> Result<bool, DeliveryError> {
        match self {
            // They have acknowledged it.
            Self::Journald(_) | Self::Otlp(_) => Ok(true),
            Self::Syslog(server) => server.has_received(sent),
        }
    }

    /// Ends the connection. Returns whether everything that was sent counts as delivered.
    pub(crate) async fn close(&mut self) -> bool {
        match self {
            Self::Journald(_) | Self::Otlp(_) => true,
            Self::Syslog(server) => server.close().await,
        }
    }
}
