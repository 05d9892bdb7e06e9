//! Refuses requests for other hosts and of foreign web pages, against DNS rebinding, before anything else is done with
//! them.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use lockhouse_base::http_checks::host_check::{ConnectionInfo, HostCheck, HostFault, requested_host};
use lockhouse_messages::HttpRefusal;

use super::counters;

/// Middleware that refuses requests for hosts other than this server (421), requests without an unambiguous host (400),
/// and requests from web origins that are not allowed (403).
pub(super) async fn check_host(
    State(host_check): State<Arc<HostCheck>>,
    request: Request,
    next: Next,
) -> Response {
    let Some(connection) = request.extensions().get::<ConnectionInfo>().copied() else {
        return (StatusCode::INTERNAL_SERVER_ERROR, "the connection is not known").into_response();
    };
    match check(&host_check, &request, connection) {
        Ok(()) => next.run(request).await,
        Err(fault) => {
            let is_origin = fault == HostFault::OtherOrigin;
            counters::count_refusal(if is_origin { HttpRefusal::Origin } else { HttpRefusal::Host });
            (fault.status(), words(&fault)).into_response()
        }
    }
}

fn check(host_check: &HostCheck, request: &Request, connection: ConnectionInfo) -> Result<(), HostFault> {
    // A browser cannot connect to a Unix domain socket, so the host is not checked there.
    if connection.local.is_none() {
        return host_check.check_origin(request.headers(), None, connection);
    }
    let host = requested_host(request.uri(), request.headers())?;
    host_check.check_host_name(&host, connection)?;
    host_check.check_origin(request.headers(), Some(&host), connection)
}

/// Returns the text of the response, with what an operator can do.
fn words(fault: &HostFault) -> String {
    match fault {
        HostFault::Ambiguous(_) => fault.to_string(),
        HostFault::OtherHost(_) => format!(
            "{fault}: use its address, or have the name added to hosts in [http] of its configuration"
        ),
        HostFault::OtherOrigin => {
            format!("{fault}: origins in [http] of the server's configuration lists the allowed ones")
        }
    }
}
