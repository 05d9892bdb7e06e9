//! Carries out what the engine's process sends while the front serves: certificates, and the end of the front.

use std::convert::Infallible;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use lockhouse_link::SetupReceiver;
use tokio_util::sync::CancellationToken;

use super::front_setup::FrontUpdate;
use super::tls::Tls;

/// Waits for the first certificate of the server. `asks_for_certificates` says whether clients are asked for theirs.
///
/// # Errors
/// The engine has ended, or the certificate cannot be used.
pub(super) async fn first_certificate(channel: &SetupReceiver, asks_for_certificates: bool) -> Result<Tls> {
    match channel.receive().await? {
        (FrontUpdate::Certificate(certificate), signer) => {
            let tls = Tls::new(certificate, take(signer)?, asks_for_certificates).map_err(Error::other)?;
            channel.confirm(true);
            Ok(tls)
        }
        (FrontUpdate::Retire, _) => Err(ErrorKind::InvalidData.into()),
    }
}

/// Carries out each message. `retiring` is cancelled when another front takes the place of this one.
pub(super) async fn follow(
    channel: SetupReceiver,
    tls: Option<Arc<Tls>>,
    retiring: CancellationToken,
) -> Infallible {
    while let Ok((update, descriptors)) = channel.receive().await {
        let done = match (update, &tls) {
            (FrontUpdate::Certificate(certificate), Some(tls)) => take(descriptors)
                .and_then(|signer| tls.replace(certificate, signer).map_err(Error::other))
                .inspect_err(|error| {
                    tracing::error!(
                        "the new certificate cannot be used, and the current one stays in use: {error}"
                    );
                }),
            (FrontUpdate::Certificate(_), None) => Err(ErrorKind::InvalidData.into()),
            (FrontUpdate::Retire, _) => {
                retiring.cancel();
                Ok(())
            }
        };
        channel.confirm(done.is_ok());
    }
    // The engine has ended, and ends this front.
    std::future::pending().await
}

fn take(mut descriptors: Vec<OwnedFd>) -> Result<OwnedFd> {
    descriptors.pop().ok_or_else(|| ErrorKind::InvalidData.into())
}
