//! A key of TLS in another process, the signer.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::socket::{MsgFlags, recv, send};
use tokio_rustls::rustls::sign::{Signer, SigningKey};
use tokio_rustls::rustls::{Error, SignatureAlgorithm, SignatureScheme};

use super::signing::{RESPONSE_BYTES_MAX, SignatureRequest, decode_response};

/// A key in the signer's process. Clones share the socket to it.
#[derive(Clone, Debug)]
pub(super) struct RemoteKey {
    schemes: Vec<SignatureScheme>,
    socket: Arc<OwnedFd>,
    last: Arc<AtomicU32>,
}

impl RemoteKey {
    /// `schemes` are the signature schemes of the key, and `socket` is the front's end of a connection to the signer.
    pub(super) fn new(schemes: Vec<u16>, socket: OwnedFd) -> Self {
        let schemes = schemes.into_iter().map(SignatureScheme::from).collect();
        Self { schemes, socket: Arc::new(socket), last: Arc::default() }
    }

    /// Asks the signer, and waits for its answer: some 20 us, and at most the time limit of the socket, 1 s.
    fn ask(&self, scheme: SignatureScheme, message: &[u8]) -> Result<Vec<u8>, Error> {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let request = SignatureRequest { scheme: scheme.into(), number, message };
        let request = request.encode().ok_or_else(|| failure("the message is too long"))?;
        let socket = self.socket.as_raw_fd();
        send(socket, &request, MsgFlags::MSG_NOSIGNAL).map_err(|errno| failure(errno.desc()))?;
        let mut response = [0; RESPONSE_BYTES_MAX];
        loop {
            let length =
                recv(socket, &mut response, MsgFlags::empty()).map_err(|errno| failure(errno.desc()))?;
            match decode_response(&response[..length]) {
                Some((found, [])) if found == number => return Err(failure("the signer refuses")),
                Some((found, signature)) if found == number => return Ok(signature.to_vec()),
                // The answer to a request that had waited too long.
                Some(_) => {}
                None => return Err(failure("the signer has ended")),
            }
        }
    }
}

fn failure(what: &str) -> Error {
    Error::General(format!("the signer of TLS: {what}"))
}

impl SigningKey for RemoteKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let scheme = self.schemes.iter().find(|scheme| offered.contains(scheme))?;
        Some(Box::new(RemoteSigner { key: self.clone(), scheme: *scheme }))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        let algorithm = |scheme: &SignatureScheme| match scheme {
            SignatureScheme::ED25519 => SignatureAlgorithm::ED25519,
            SignatureScheme::ECDSA_NISTP256_SHA256
            | SignatureScheme::ECDSA_NISTP384_SHA384
            | SignatureScheme::ECDSA_NISTP521_SHA512 => SignatureAlgorithm::ECDSA,
            _ => SignatureAlgorithm::RSA,
        };
        self.schemes.first().map_or(SignatureAlgorithm::Anonymous, algorithm)
    }
}

#[derive(Debug)]
struct RemoteSigner {
    key: RemoteKey,
    scheme: SignatureScheme,
}

impl Signer for RemoteSigner {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        self.key.ask(self.scheme, message)
    }

    fn scheme(&self) -> SignatureScheme {
        self.scheme
    }
}
