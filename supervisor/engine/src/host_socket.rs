//! Serves the other hosts of the cluster, and keeps the lease of this one. Requests of other hosts come with the credentials of AI
//! clients, and are served as those of a front.

use std::convert::Infallible;
use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::time::Duration;

use lockhouse_access::Authenticator;
use lockhouse_cluster::{HostConnection, HostLease, HostListener, LeaseEnd, Use, read_server_name};
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
use crate::supervisor::Supervisor;

/// Maximum number of handshakes at one time. Further connections wait.
/// Bound: hosts of a cluster.
const HANDSHAKES_MAX: usize = 64;
/// Maximum time until another host sends its first message.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval at which connections to hosts that have ended are closed.
const CLOSE_INTERVAL: Duration = Duration::from_secs(1);
/// Pause after the socket failed to accept a connection.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(200);

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
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    // Dropped with this future, which ends the connections.
    let mut serving = tokio::task::JoinSet::new();
    loop {
        while serving.try_join_next().is_some() {}
        // The semaphore is never closed.
        let Ok(handshake) = handshakes.clone().acquire_owned().await else { continue };
        match listener.accept().await {
            Ok(stream) => {
                let (supervisor, listener) = (supervisor.clone(), listener.clone());
                serving.spawn(async move {
                    if let Err(error) = serve(&supervisor, &listener, stream, handshake).await {
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
    stream: TcpStream,
    handshake: OwnedSemaphorePermit,
) -> Result<()> {
    let (connection, host, what_for) = listener.shake_hands(stream).await?;
    drop(handshake);
    tracing::debug!("the host {} has connected", host.name);
    match what_for {
        Use::Requests => serve_host(supervisor, connection).await,
        Use::Server => serve_server(supervisor, connection).await,
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

async fn serve_host(supervisor: &Arc<Supervisor>, connection: HostConnection) -> Result<()> {
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
    front_link::serve(supervisor, version, &mut reader, &mut writer, FrontKind::Host, false).await
}
