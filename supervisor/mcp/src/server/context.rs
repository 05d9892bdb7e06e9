//! The context of a request of an AI client: its metadata, its client, and the channel for its messages.

use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, Implementation, ProtocolVersion, RequestId, RequestMetaObject, ServerNotification,
    ServerResult,
};
use tokio_util::sync::CancellationToken;

use super::connection::{ClientChannel, ClientConnection};

/// The context of a request of an AI client.
pub struct RequestContext {
    pub id: RequestId,
    pub meta: RequestMetaObject,
    /// The head of the HTTP request that carried the request; `None` on standard input.
    pub http: Option<Arc<http::request::Parts>>,
    /// For notifications and questions that belong to the request.
    pub channel: ClientChannel,
    /// Cancelled when the client cancels the request, or its connection ends. The request then has no answer.
    pub cancelled: CancellationToken,
}

impl RequestContext {
    pub fn connection(&self) -> &ClientConnection {
        self.channel.connection()
    }

    /// Returns the protocol version that the request names, or else the one that was agreed on in `initialize`.
    pub fn protocol_version(&self) -> Option<ProtocolVersion> {
        let agreed = || Some(self.connection().client()?.protocol_version.clone());
        self.meta.protocol_version().or_else(agreed)
    }

    /// Returns whether the client speaks protocol version 2026-07-28 or a newer one, in which a server asks the user by
    /// answering a request with `input_required`.
    pub fn is_modern(&self) -> bool {
        self.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
    }

    /// Returns the name and the version of the client, if it has given them.
    pub fn client_info(&self) -> Option<Implementation> {
        let begun = || Some(self.connection().client()?.client_info.clone());
        self.meta.client_info().or_else(begun)
    }

    /// Returns the capabilities of the client, if it has declared them.
    pub fn client_capabilities(&self) -> Option<ClientCapabilities> {
        let begun = || Some(self.connection().client()?.capabilities.clone());
        self.meta.client_capabilities().or_else(begun)
    }

    /// Sends a notification that belongs to the request. Drops it if the connection has ended.
    pub async fn notify(&self, notification: ServerNotification) {
        let _ = self.channel.notify(notification).await;
    }

    /// Returns a result as JSON text, with the members that the client's protocol version has.
    pub fn to_text(&self, result: impl Into<ServerResult>) -> String {
        let mut result = result.into();
        if self.is_modern() {
            result.fill_missing_cache_hints();
        } else {
            result.strip_result_type_for_legacy_peer();
        }
        serde_json::to_string(&result).unwrap_or_default()
    }
}
