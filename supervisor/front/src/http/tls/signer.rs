//! The signer: the process that has the private key of TLS.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use lockhouse_link::receive_socket;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv, send};
use tokio_rustls::rustls::SignatureScheme;
use tokio_rustls::rustls::sign::CertifiedKey;

use super::files::{TlsError, load};
use super::signing::{REQUEST_BYTES_MAX, SignatureRequest, encode_response, is_tls13_handshake};
use super::{ServedCertificate, TlsSettings, TlsVersion};

/// Maximum number of fronts at one time: one, and another one that takes its place.
const FRONTS_MAX: usize = 16;

/// A private key, and what it signs.
#[derive(Debug)]
pub struct Signer {
    key: CertifiedKey,
    minimum: TlsVersion,
}

/// What follows for a front after one of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Stays,
    /// It has closed its end, or violated the protocol.
    Gone,
}

impl Signer {
    /// Reads the certificate and key files, and checks that they can be used.
    ///
    /// # Errors
    /// [`TlsError`], which says what to change.
    pub fn load(settings: &TlsSettings) -> Result<Self, TlsError> {
        Ok(Self { key: load(&settings.files)?, minimum: settings.minimum })
    }

    /// Returns the public part of the certificate and the key.
    #[must_use]
    pub fn certificate(&self) -> ServedCertificate {
        ServedCertificate::of(&self.key, self.minimum)
    }

    /// Makes one signature, so that the crypto library loads what it loads at its first use.
    pub fn warm_up(&self) {
        let scheme = self.certificate().schemes.first().copied();
        drop(scheme.and_then(|scheme| self.sign(scheme, &[0x20; 130])));
    }

    /// Signs for the fronts whose sockets arrive at `control`, until the engine has closed the other end of `control` and all
    /// fronts have closed theirs.
    ///
    /// # Errors
    /// A system call fails.
    pub fn serve(&self, control: BorrowedFd<'_>) -> std::io::Result<()> {
        let (mut fronts, mut has_engine) = (Vec::<OwnedFd>::new(), true);
        while has_engine || !fronts.is_empty() {
            let accepts = has_engine && fronts.len() < FRONTS_MAX;
            let waiting = fronts.iter().map(AsFd::as_fd).chain(accepts.then_some(control));
            let mut waiting: Vec<PollFd<'_>> =
                waiting.map(|socket| PollFd::new(socket, PollFlags::POLLIN)).collect();
            match poll(&mut waiting, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            let mut ready: Vec<bool> = waiting.iter().map(|front| front.any() == Some(true)).collect();
            if accepts && ready.pop() == Some(true) {
                match receive_socket(control)? {
                    Some(front) => fronts.push(front),
                    None => has_engine = false,
                }
            }
            let mut ready = ready.into_iter();
            fronts.retain(|front| ready.next() != Some(true) || self.answer(front) == Outcome::Stays);
        }
        Ok(())
    }

    /// Answers one request of a front.
    fn answer(&self, front: &OwnedFd) -> Outcome {
        // One byte more than a request may have, so that a longer one is noticed.
        let mut packet = [0; REQUEST_BYTES_MAX + 1];
        let length = match recv(front.as_raw_fd(), &mut packet, MsgFlags::MSG_DONTWAIT) {
            Ok(length) => length,
            Err(Errno::EINTR | Errno::EAGAIN) => return Outcome::Stays,
            Err(_) => return Outcome::Gone,
        };
        let request = SignatureRequest::decode(&packet[..length]);
        let Some(request) = request.filter(|_| length <= REQUEST_BYTES_MAX) else { return Outcome::Gone };
        let response = encode_response(request.number, self.respond(&request));
        // A front that does not read its answers loses them.
        match send(front.as_raw_fd(), &response, MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT) {
            Ok(_) | Err(Errno::EAGAIN) => Outcome::Stays,
            Err(_) => Outcome::Gone,
        }
    }

    /// Returns the signature of a message. `None` if it is not to be signed.
    fn respond(&self, request: &SignatureRequest<'_>) -> Option<Vec<u8>> {
        let is_permitted = match self.minimum {
            TlsVersion::Tls13 => is_tls13_handshake(request.message),
            // Nothing tells what a server signs in a handshake of TLS 1.2 from other bytes.
            TlsVersion::Tls12 => true,
        };
        is_permitted.then(|| self.sign(request.scheme, request.message)).flatten()
    }

    fn sign(&self, scheme: u16, message: &[u8]) -> Option<Vec<u8>> {
        let signer = self.key.key.choose_scheme(&[SignatureScheme::from(scheme)])?;
        signer.sign(message).ok()
    }
}
