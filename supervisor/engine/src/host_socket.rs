//! Serves the other hosts of the cluster, and keeps the lease of this one. Requests of other hosts come with the credentials of AI
//! clients, and are served as those of a front.

use std::convert::Infallible;
use std::io::{Error, ErrorKind, Result};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_access::Authenticator;
use lockhouse_cluster::{HostConnection, HostLease, HostListener, HostName, LeaseEnd, Use, read_server_name};
use lockhouse_link::greetings;
use lockhouse_messages::{Greeting, GreetingReply, VERSIONS};
use lockhouse_protocol::ServerName;
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::cluster::Cluster;
use crate::front_connection::FrontKind;
use crate::front_link;
use crate::open_counts::{OpenCount, OpenCounts};
use crate::supervisor::Supervisor;

/// Maximum number of handshakes at one time. Further connections wait.
/// Bound: hosts of a cluster.
const HANDSHAKES_MAX: usize = 64;
/// Maximum number of handshakes with one address at one time. Further connections are closed.
/// Bound: hosts of a cluster.
const HANDSHAKES_PER_ADDRESS_MAX: usize = 8;
/// Maximum number of connections of one host at one time for requests of clients (`REQUEST_CONNECTIONS_MAX`), of which a host needs one,
/// and for servers (`SERVER_CONNECTIONS_MAX`), one for each with `cluster = "one"`.
/// Bound: hosts of a cluster.
const REQUEST_CONNECTIONS_MAX: usize = 8;
const SERVER_CONNECTIONS_MAX: usize = 256;
/// Maximum time until another host sends its first message.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval at which connections to hosts that have ended are closed.
const CLOSE_INTERVAL: Duration = Duration::from_secs(1);
/// Pause after the socket failed to accept a connection.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(200);

/// The connections of other hosts that are open.
#[derive(Clone, Debug, Default)]
struct OpenConnections {
    handshakes: OpenCounts<Option<IpAddr>>,
    of_hosts: OpenCounts<(HostName, Use)>,
}

/// Serves the other hosts and keeps the lease of this one, until the lease has ended.
pub async fn serve_cluster(
    supervisor: &Arc<Supervisor>,
    cluster: &Cluster,
    lease: &mut HostLease,
    listener: &HostListener,
) -> LeaseEnd {
    let report = || supervisor.host_report();
    let all_agree = async || cluster.peers().all_lack_shared_state().await;
    tokio::select! {
        end = cluster.membership().keep(lease, report, all_agree) => end,
        never = accept(supervisor, listener) => match never {},
        never = cluster.keep_items() => match never {},
        never = cluster.copy_audit() => match never {},
        never = supervisor.keep_value_copies() => match never {},
        never = share_revocations(supervisor, cluster) => match never {},
        never = close_ended(cluster) => match never {},
    }
}

/// Ends the connections to hosts that have ended.
async fn close_ended(cluster: &Cluster) -> Infallible {
    loop {
        tokio::time::sleep(CLOSE_INTERVAL).await;
        cluster.peers().close_ended();
    }
}

async fn share_revocations(supervisor: &Supervisor, cluster: &Cluster) -> Infallible {
    let own = || supervisor.authenticator().map(Authenticator::revoked_tokens).unwrap_or_default();
    let revoke = |digest| {
        if let Some(authenticator) = supervisor.authenticator() {
            authenticator.revoke_token(digest);
        }
    };
    cluster.membership().share_revocations(own, revoke).await
}

/// Accepts other hosts until this future is dropped.
async fn accept(supervisor: &Arc<Supervisor>, listener: &HostListener) -> Infallible {
    let (handshakes, open) = (Arc::new(Semaphore::new(HANDSHAKES_MAX)), OpenConnections::default());
    // Dropped with this future, which ends the connections.
    let mut serving = tokio::task::JoinSet::new();
    loop {
        while serving.try_join_next().is_some() {}
        // The semaphore is never closed.
        let Ok(handshake) = handshakes.clone().acquire_owned().await else { continue };
        match listener.accept().await {
            Ok(stream) => {
                let address = stream.peer_addr().ok().map(|address| address.ip());
                let Some(shaking) = open.handshakes.open(address, HANDSHAKES_PER_ADDRESS_MAX) else {
                    tracing::warn!(
                        "a connection of {address:?} is closed: it has too many without a handshake"
                    );
                    continue;
                };
                let (supervisor, listener, open) = (supervisor.clone(), listener.clone(), open.clone());
                serving.spawn(async move {
                    if let Err(error) =
                        serve(&supervisor, &listener, &open, stream, (handshake, shaking)).await
                    {
                        tracing::warn!("the connection of another host ended: {error}");
                    }
                });
            }
            Err(error) => {
                tracing::warn!("the socket for other hosts cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}

async fn serve(
    supervisor: &Arc<Supervisor>,
    listener: &HostListener,
    open: &OpenConnections,
    stream: TcpStream,
    handshake: (OwnedSemaphorePermit, OpenCount<Option<IpAddr>>),
) -> Result<()> {
    let (connection, host, what_for) = listener.shake_hands(stream).await?;
    drop(handshake);
    tracing::debug!("the host {} has connected", host.name);
    let max = match what_for {
        Use::Requests => REQUEST_CONNECTIONS_MAX,
        Use::Server => SERVER_CONNECTIONS_MAX,
    };
    let too_many = || Error::other(format!("the host {} has {max} of this kind", host.name));
    let _open = open.of_hosts.open((host.name.clone(), what_for), max).ok_or_else(too_many)?;
    let serving = async {
        match what_for {
            Use::Requests => serve_host(supervisor, host.name, connection).await,
            Use::Server => serve_server(supervisor, connection).await,
        }
    };
    tokio::select! {
        served = serving => served,
        () = listener.ended(host.record.tag) => Err(Error::other("that life of the host has ended")),
    }
}

/// Serves a server of this host to another host, if all hosts use the process of this one.
async fn serve_server(supervisor: &Supervisor, mut connection: HostConnection) -> Result<()> {
    let name = read_server_name(&mut connection).await?;
    let refused = |reason: &str| Error::other(format!("the server {name:?} is not served to it: {reason}"));
    let name = ServerName::new(&name).map_err(|_| refused("no server has this name"))?;
    let upstreams = supervisor.gate().upstreams().clone();
    let server =
        upstreams.single(&name).ok_or_else(|| refused("cluster = \"one\" is not set for it here"))?;
    match upstreams.places().is_here(name.as_str()).await {
        Ok(true) => lockhouse_upstream::serve_host(server, connection).await,
        Ok(false) => Err(refused("another host runs it")),
        Err(error) => Err(Error::other(error)),
    }
}

async fn serve_host(supervisor: &Arc<Supervisor>, host: HostName, connection: HostConnection) -> Result<()> {
    let (reader, mut writer) = tokio::io::split(connection);
    let mut reader = BufReader::new(reader);
    let greeting = timeout(GREETING_TIMEOUT, greetings::read::<Greeting>(&mut reader)).await;
    let Some(greeting) = greeting.map_err(|_| Error::from(ErrorKind::TimedOut))?? else { return Ok(()) };
    let Some(version) = greeting.versions().newest_common(VERSIONS) else {
        return greetings::write(&mut writer, &GreetingReply::Unsupported { version: VERSIONS.newest }).await;
    };
    let own = supervisor.cluster().map(|cluster| cluster.membership().tag().to_string());
    let Greeting::Hello { setup, .. } = greeting;
    if setup != own {
        // The other host looks for an earlier life of this one.
        return greetings::write(&mut writer, &GreetingReply::OtherSetup).await;
    }
    front_link::serve(supervisor, version, &mut reader, &mut writer, FrontKind::Host(host), false).await
}
