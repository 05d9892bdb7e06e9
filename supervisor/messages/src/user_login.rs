//! Requests of users of the service about their own credentials for upstream servers.

use lockhouse_protocol::ServerName;
use serde::{Deserialize, Serialize};

use crate::secret::SecretValue;

/// A step of a user to credentials of their own for an upstream server, or away from them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UserLoginRequest {
    /// Stores the secret of a server that needs one. The response has no text. Begins an OAuth login to any other server, after
    /// which the browser returns to `redirect`. The response is the address that the browser must open.
    Begin { server: ServerName, secret: Option<SecretValue>, redirect: String },
    /// Completes the OAuth login with the address to which the browser returned. The response has no text.
    Finish { server: ServerName, returned_to: String },
    /// Deletes the credentials, and revokes tokens. The response has no text.
    LogOut { server: ServerName },
}
