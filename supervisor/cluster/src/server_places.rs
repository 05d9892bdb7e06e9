//! On which host an upstream server runs of which all hosts use one process: on the first one that needs it, until that host ends.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::connections::{ConnectError, HostConnection, Use, connect};
use crate::host_table::{Host, Place};
use crate::membership::Membership;
use crate::shared_state::Unavailable;
use crate::state_table::Table;
use crate::stored_forms::{digest_key, tag_of_value, tag_value};

/// How often a host tries to find the place again while another one changes it.
const TRIES_MAX: usize = 3;
/// Maximum length of the name of a server on a connection, in bytes.
const NAME_BYTES_MAX: u8 = 128;
/// Maximum time until another host says which server it uses.
const NAME_TIMEOUT: Duration = Duration::from_secs(5);

/// Where a server is.
#[derive(Debug)]
pub enum ServerPlace {
    /// This host runs it.
    Here,
    /// Another host runs it, and passes requests on over this connection.
    There(Box<HostConnection>),
}

/// Why a server cannot be used, as a clause.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("the host {host}, which runs it, cannot be reached: {error}")]
    Unreachable { host: String, error: ConnectError },
}

/// The places of the servers of which all hosts use one process. Empty if this process is part of no cluster: it then runs all servers.
/// Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct ServerPlaces(Arc<OnceLock<Membership>>);

impl ServerPlaces {
    /// Makes this process one of a cluster. Later calls have no effect.
    pub fn begin(&self, membership: Membership) {
        let _ = self.0.set(membership);
    }

    /// Returns where a server is. If it is nowhere, it is on this host from now on.
    ///
    /// # Errors
    /// [`PlaceError`]
    pub async fn find(&self, server: &str) -> Result<ServerPlace, PlaceError> {
        let Some(membership) = self.0.get() else { return Ok(ServerPlace::Here) };
        let (state, key) = (membership.state(), digest_key(server));
        let own = tag_value(membership.tag());
        for _ in 0..TRIES_MAX {
            let Some(stored) = state.get(Table::Servers, &key).await? else {
                match state.create(Table::Servers, &key, own.clone()).await? {
                    Some(_) => return Ok(ServerPlace::Here),
                    None => continue,
                }
            };
            let place = match tag_of_value(&stored.value) {
                Some(tag) => membership.locate_or_read(tag).await,
                None => Place::Nowhere,
            };
            match place {
                Place::Here => return Ok(ServerPlace::Here),
                Place::At(host) => {
                    let connected = open(membership, &host, server).await;
                    let unreachable = |error| PlaceError::Unreachable { host: host.name.to_string(), error };
                    return connected.map(|stream| ServerPlace::There(Box::new(stream))).map_err(unreachable);
                }
                Place::Nowhere => {
                    if state.update(Table::Servers, &key, own.clone(), stored.revision).await?.is_some() {
                        return Ok(ServerPlace::Here);
                    }
                }
            }
        }
        Err(Unavailable::changing().into())
    }

    /// Whether this host runs a server.
    ///
    /// # Errors
    /// [`Unavailable`]
    pub async fn is_here(&self, server: &str) -> Result<bool, Unavailable> {
        let Some(membership) = self.0.get() else { return Ok(true) };
        let stored = membership.state().get(Table::Servers, &digest_key(server)).await?;
        Ok(stored.is_some_and(|stored| tag_of_value(&stored.value) == Some(membership.tag())))
    }
}

async fn open(membership: &Membership, host: &Host, server: &str) -> Result<HostConnection, ConnectError> {
    let mut stream = connect(membership, host, Use::Server).await?;
    let length = u8::try_from(server.len()).ok().filter(|length| *length <= NAME_BYTES_MAX);
    let length = length.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    stream.write_u8(length).await?;
    stream.write_all(server.as_bytes()).await?;
    stream.flush().await?;
    Ok(stream)
}

/// Reads which server another host uses over a connection.
///
/// # Errors
/// The other host says none, or takes too long.
pub async fn read_server_name(stream: &mut HostConnection) -> io::Result<String> {
    let read = async {
        let length = stream.read_u8().await?;
        if length > NAME_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut name = vec![0; usize::from(length)];
        stream.read_exact(&mut name).await?;
        String::from_utf8(name).map_err(|_| io::ErrorKind::InvalidData.into())
    };
    timeout(NAME_TIMEOUT, read).await.map_err(|_| io::ErrorKind::TimedOut)?
}
