//! What a door must have before it opens to more than this host.

use thiserror::Error;

use super::HttpSettings;
use super::address::Address;
use super::proxies::TrustedProxy;
use crate::access::Way;

/// What would let strangers in, and what to do.
#[derive(Debug, Error)]
pub enum ExposureError {
    #[error(
        "{key} lets others in through the proxy, and auth = \"none\" asks nobody for proof: set another auth in [http]"
    )]
    OpenToProxy { key: &'static str },
    #[error(
        "{key} and auth = \"peer\": everybody behind the proxy would be the proxy's user; take \"peer\" out of auth in [http]"
    )]
    ProxyAsUser { key: &'static str },
    #[error(
        "{0} can be reached from other hosts, and auth = \"none\" is for loopback addresses and Unix domain sockets alone: set another auth in [http], or listen at 127.0.0.1"
    )]
    OpenToHosts(Address),
    #[error(
        "{0} can be reached from other hosts, and without TLS whoever is on the way reads every token: set certificate and key in [http.tls], or behind_proxy = true if a proxy in front of it speaks TLS, or listen at 127.0.0.1"
    )]
    NoTls(Address),
}

/// Refuses what would let strangers in.
pub(super) fn check(settings: &HttpSettings, at: &Address) -> Result<(), ExposureError> {
    let is_open = settings.access.auth.is_none();
    let proxies = &settings.trusted_proxies;
    let key = if settings.behind_proxy { "behind_proxy = true" } else { "trusted_proxies" };
    if is_open && (settings.behind_proxy || !proxies.is_empty()) {
        return Err(ExposureError::OpenToProxy { key });
    }
    let is_peers_user = settings.behind_proxy || proxies.contains(&TrustedProxy::Unix);
    if is_peers_user && settings.access.auth.has(Way::Peer) {
        return Err(ExposureError::ProxyAsUser { key });
    }
    if settings.behind_proxy && proxies.is_empty() {
        tracing::warn!(
            "behind_proxy = true without trusted_proxies: all clients behind the proxy have its address, and share the limits of one peer; \
             name the proxy in trusted_proxies of [http]"
        );
    }
    if at.is_local() {
        if is_open {
            tracing::warn!("whoever reaches {at} is let in without proof: auth = \"none\" of [http]");
        }
        return Ok(());
    }
    if is_open {
        return Err(ExposureError::OpenToHosts(at.clone()));
    }
    if settings.tls.is_none() && !settings.behind_proxy {
        return Err(ExposureError::NoTls(at.clone()));
    }
    Ok(())
}
