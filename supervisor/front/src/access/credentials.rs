//! Takes the credential of an HTTP request from its head and its connection.

use std::sync::Arc;

use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use lockhouse_messages::{AccessRefusal, Base64Bytes, ClientCertificate, Credential, TokenCertificate};

use super::Peer;

/// The header with the proof of a token that is bound to a key (RFC 9449).
const PROOF: &str = "dpop";

/// The certificate of the client of a request, and to whom the client has shown it.
#[derive(Clone, Debug)]
pub(crate) enum ShownBy {
    /// To this process, in the handshake of the connection.
    Client(Arc<ClientCertificate>),
    /// To a trusted proxy, which passes it on in DER.
    Proxy(Arc<Vec<u8>>),
}

/// Returns the credential of a request: the token of its header `Authorization`, with the certificate of its client, or without this
/// header its connection, if that has a certificate or is one to a Unix domain socket.
///
/// # Errors
/// [`AccessRefusal::DuplicateHeader`], [`AccessRefusal::NotBearer`] or [`AccessRefusal::InvalidProof`].
pub(super) fn credential(head: &Parts, peer: Option<&Peer>) -> Result<Credential, AccessRefusal> {
    let mut sent = head.headers.get_all(AUTHORIZATION).iter();
    let certificate = head.extensions.get::<ShownBy>();
    let Some(authorization) = sent.next() else {
        return Ok(match (peer, certificate) {
            (Some(Peer::Unix { connection: Some(id), .. }), _) => Credential::UnixConnection(*id),
            (_, Some(ShownBy::Client(certificate))) => Credential::Certificate((**certificate).clone()),
            _ => Credential::None,
        });
    };
    if sent.next().is_some() {
        return Err(AccessRefusal::DuplicateHeader);
    }
    let sent = authorization.to_str().map_err(|_| AccessRefusal::NotBearer)?;
    let (scheme, token) = sent.split_once(' ').ok_or(AccessRefusal::NotBearer)?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    let token = token.trim_matches(' ');
    if token.is_empty() || !token.bytes().all(is_token) {
        return Err(AccessRefusal::NotBearer);
    }
    let token = token.to_owned();
    match scheme.to_ascii_lowercase().as_str() {
        "bearer" => Ok(match certificate {
            Some(ShownBy::Client(certificate)) => {
                let certificate = TokenCertificate::Handshake((**certificate).clone());
                Credential::CertificateToken { token, certificate }
            }
            Some(ShownBy::Proxy(certificate)) => {
                let certificate = TokenCertificate::Proxy(Base64Bytes((**certificate).clone()));
                Credential::CertificateToken { token, certificate }
            }
            None => Credential::Bearer(token),
        }),
        "dpop" => {
            Ok(Credential::BoundToken { token, proof: proof(head)?, method: head.method.as_str().to_owned() })
        }
        _ => Err(AccessRefusal::NotBearer),
    }
}

/// Returns the one proof of a request.
fn proof(head: &Parts) -> Result<String, AccessRefusal> {
    let mut sent = head.headers.get_all(PROOF).iter();
    match (sent.next().map(|proof| proof.to_str()), sent.next()) {
        (Some(Ok(proof)), None) => Ok(proof.to_owned()),
        _ => Err(AccessRefusal::InvalidProof("the request must have one header DPoP".into())),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderValue, Request};
    use lockhouse_messages::ConnectionId;

    use super::*;

    #[test]
    fn a_request_has_the_credential_of_its_header_and_otherwise_of_its_connection() {
        let unix = |connection| Peer::Unix { uid: 7, gid: 8, pid: None, connection };
        let user = unix(Some(ConnectionId(3)));
        let address = Peer::Tcp(([127, 0, 0, 1], 1).into());
        let of = |sent: &[&'static [u8]], peer: &Peer| {
            let (mut head, ()) = Request::new(()).into_parts();
            for value in sent {
                head.headers.append(AUTHORIZATION, HeaderValue::from_bytes(value).expect("a header"));
            }
            credential(&head, Some(peer))
        };
        assert_eq!(of(&[], &user), Ok(Credential::UnixConnection(ConnectionId(3))));
        assert_eq!(of(&[], &unix(None)), Ok(Credential::None));
        assert_eq!(of(&[], &address), Ok(Credential::None));
        let forwarded = Peer::Forwarded([192, 0, 2, 1].into());
        assert_eq!(of(&[], &forwarded), Ok(Credential::None));
        for sent in [&b"Bearer a.b-c_1~+/="[..], b"bearer  a.b-c_1~+/= "] {
            assert_eq!(of(&[sent], &user), Ok(Credential::Bearer("a.b-c_1~+/=".into())));
        }
        for sent in [&b"Bearer"[..], b"Bearer ", b"Basic abc", b"Bearer a b", b"Bearer \xff", b"Bearer a,b"] {
            assert_eq!(of(&[sent], &user), Err(AccessRefusal::NotBearer), "{sent:?}");
        }
        assert_eq!(of(&[b"Bearer a", b"Bearer a"], &user), Err(AccessRefusal::DuplicateHeader));
    }

    #[test]
    fn a_certificate_comes_with_a_token_and_is_a_credential_if_the_client_has_proved_it() {
        let bytes = |bytes: &[u8]| Base64Bytes(bytes.to_vec());
        let shown = ClientCertificate {
            chain: vec![bytes(b"der")],
            handshake: bytes(b"hash"),
            scheme: 0x0403,
            signature: bytes(b"signature"),
        };
        let of = |by: ShownBy, sent: &[&'static str]| {
            let (mut head, ()) = Request::new(()).into_parts();
            head.extensions.insert(by);
            for value in sent {
                head.headers.append(AUTHORIZATION, HeaderValue::from_static(value));
            }
            credential(&head, Some(&Peer::Tcp(([127, 0, 0, 1], 1).into()))).expect("a credential")
        };
        let client = || ShownBy::Client(Arc::new(shown.clone()));
        let proxy = || ShownBy::Proxy(Arc::new(b"der".to_vec()));
        let with_token = |certificate| Credential::CertificateToken { token: "t".into(), certificate };
        assert_eq!(of(client(), &[]), Credential::Certificate(shown.clone()));
        assert_eq!(of(proxy(), &[]), Credential::None);
        assert_eq!(of(client(), &["Bearer t"]), with_token(TokenCertificate::Handshake(shown.clone())));
        assert_eq!(of(proxy(), &["Bearer t"]), with_token(TokenCertificate::Proxy(bytes(b"der"))));
    }

    #[test]
    fn a_bound_token_has_one_proof() {
        let of = |proofs: &[&'static str]| {
            let (mut head, ()) = Request::post("/mcp").body(()).expect("a request").into_parts();
            head.headers.append(AUTHORIZATION, HeaderValue::from_static("DPoP t"));
            for proof in proofs {
                head.headers.append(PROOF, HeaderValue::from_static(proof));
            }
            credential(&head, None)
        };
        let bound = Credential::BoundToken { token: "t".into(), proof: "p".into(), method: "POST".into() };
        assert_eq!(of(&["p"]), Ok(bound));
        for proofs in [&[][..], &["p", "p"]] {
            assert!(matches!(of(proofs), Err(AccessRefusal::InvalidProof(_))), "{proofs:?}");
        }
    }
}
