//! Serves the page over HTTP/1.1, with limits on connections and times.

use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use lockhouse_base::http_checks::checked_stream::HeadCheckedStream;
use lockhouse_base::http_checks::host_check::HostCheck;
use tokio::sync::Semaphore;

use super::access::Access;
use super::action::Operator;
use super::activity::Activity;
use super::listener::{Connection, Listener};
use super::page_state::PageState;
use super::router;
use super::sections::{PAGES_MAX, Sections};

/// Maximum number of connections: those of all open pages, and some for other requests.
/// Bound: the live page.
const CONNECTIONS_MAX: usize = PAGES_MAX + 150;
/// Maximum time for the head of a request to arrive, also of the next request on an open connection.
/// Bound: the live page.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum bytes of the head of a request. Longer heads are rejected.
/// Bound: the live page.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Pause after a connection could not be accepted. The cause is often temporary, such as too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(200);

/// What a page shows and does.
pub struct PageServer {
    pub access: Arc<Access>,
    pub sections: Sections,
    pub activity: Activity,
    pub operator: Arc<dyn Operator>,
}

/// Serves pages on this socket. Never returns.
pub async fn serve(listener: Listener, server: PageServer) {
    let PageServer { access, sections, activity, operator } = server;
    let (address, hosts) = (listener.address(), HostCheck { hosts: listener.hosts(), origins: Vec::new() });
    let router = router::router(Arc::new(PageState { access, sections, activity, operator, address }), hosts);
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = permits.clone().acquire_owned().await else { return };
        let connection = match listener.accept().await {
            Ok(connection) => connection,
            Err(error) => {
                tracing::warn!("the page cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
        };
        let router = router.clone();
        tokio::spawn(async move {
            serve_connection(connection, router).await;
            drop(permit);
        });
    }
}

async fn serve_connection(Connection { stream, ends }: Connection, router: Router) {
    let router = match ends {
        Some(ends) => router.layer(Extension(ends)),
        None => router,
    };
    let stream = HeadCheckedStream::new(stream, HEAD_BYTES_MAX);
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    if let Err(error) = serving.await {
        tracing::debug!("a connection to the page has ended: {error}");
    }
}
