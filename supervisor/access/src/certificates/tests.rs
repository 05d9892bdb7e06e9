use std::time::SystemTime;

use data_encoding::BASE64;
use lockhouse_messages::Base64Bytes;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    SanType, SigningKey,
};

use super::*;

/// The certificate of RFC 8705, appendix A, and its thumbprint.
const RFC_CERTIFICATE: &str = "MIIBBjCBrAIBAjAKBggqhkjOPQQDAjAPMQ0wCwYDVQQDDARtdGxzMB4XDTE4MTAxODEyMzcwOVoXDTIyMDUw\
    MjEyMzcwOVowDzENMAsGA1UEAwwEbXRsczBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABNcnyxwqV6hY8QnhxxzFQ03C7HKW9OylMbnQZjjJ/Au08\
    /coZwxS7LfA4vOLS9WuneIXhbGGWvsDSb0tH6IxLm8wCgYIKoZIzj0EAwIDSQAwRgIhAP0RC1E+vwJD/D1AGHGzuri+hlV/PpQEKTWUVeORWz83AiEA\
    5x2eXZOVbUlJSGQgjwD5vaUaKlLR50Q2DmFfQj1L+SY=";
const RFC_THUMBPRINT: &str = "A4DtL2JmUMhAsvJj5tKyn64SqzmuXbMrJa0n761y5v0";

const HASH: [u8; 32] = [7; 32];
const CLIENT_CONTEXT: &[u8] = b"TLS 1.3, client CertificateVerify\0";

fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a certificate")
}

fn params(names: &[SanType]) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.subject_alt_names = names.to_vec();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params
}

fn email(name: &str) -> SanType {
    SanType::Rfc822Name(name.try_into().expect("ASCII"))
}

/// Returns a certificate as a front passes it on, whose key has signed `message`.
fn shown(chain: &[&[u8]], key: &KeyPair, message: &[u8]) -> ClientCertificate {
    let bytes = |bytes: &[u8]| Base64Bytes(bytes.to_vec());
    ClientCertificate {
        chain: chain.iter().map(|der| bytes(der)).collect(),
        handshake: bytes(&HASH),
        scheme: 0x0403,
        signature: Base64Bytes(key.sign(message).expect("a signature")),
    }
}

fn handshake(context: &[u8]) -> Vec<u8> {
    [&[0x20; 64][..], context, &HASH].concat()
}

fn issued(params: CertificateParams, by: &CertifiedIssuer<'static, KeyPair>) -> ClientCertificate {
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, by).expect("a certificate");
    shown(&[certificate.der()], &key, &handshake(CLIENT_CONTEXT))
}

struct Place(tempfile::TempDir);

impl Place {
    fn verifier(&self, authority: &str, revoked: Option<&str>, name: CertificateName) -> ClientCertificates {
        let file = |name: &str, text: &str| {
            let path = self.0.path().join(name);
            std::fs::write(&path, text).expect("written");
            path
        };
        let authorities = file("ca.pem", authority);
        let revoked = revoked.map(|text| file("ca.crl", text));
        ClientCertificates::new(CertificateSettings { authorities, revoked, name }).expect("usable files")
    }
}

fn outcome(verifier: &ClientCertificates, certificate: &ClientCertificate) -> String {
    match verifier.principal(certificate) {
        Ok(principal) => principal.authenticated_client().expect("authenticated").as_str().to_owned(),
        Err(AccessRefusal::InvalidCertificate(reason)) => reason.into_owned(),
        Err(other) => format!("{other:?}"),
    }
}

#[test]
fn the_thumbprint_is_that_of_the_rfc() {
    let der = BASE64.decode(RFC_CERTIFICATE.as_bytes()).expect("base64");
    assert_eq!(thumbprint_of(&der), RFC_THUMBPRINT);
    assert_eq!(thumbprint(&TokenCertificate::Proxy(Base64Bytes(der))).as_deref(), Ok(RFC_THUMBPRINT));
}

#[test]
fn a_certificate_authenticates_whom_its_authority_named_and_who_has_the_key() {
    let (ours, other) = (authority("ours"), authority("other"));
    let place = Place(tempfile::tempdir().expect("a directory"));
    let verifier = place.verifier(&ours.pem(), None, CertificateName::Email);
    let ada = || params(&[email("ada@example.com")]);
    assert_eq!(outcome(&verifier, &issued(ada(), &ours)), "certificate:ada@example.com");
    assert_eq!(outcome(&verifier, &issued(ada(), &other)), "no authority of the configuration has issued it");

    let day = Duration::from_hours(24);
    let mut expired = ada();
    (expired.not_before, expired.not_after) =
        ((SystemTime::now() - 2 * day).into(), (SystemTime::now() - day).into());
    assert_eq!(outcome(&verifier, &issued(expired, &ours)), "it has expired");
    let mut early = ada();
    (early.not_before, early.not_after) =
        ((SystemTime::now() + day).into(), (SystemTime::now() + 2 * day).into());
    assert_eq!(outcome(&verifier, &issued(early, &ours)), "it is not valid yet: compare the clocks");
    let mut server = ada();
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    assert_eq!(outcome(&verifier, &issued(server, &ours)), "it is not for clients (clientAuth)");

    let (key, thief) = (KeyPair::generate().expect("a key"), KeyPair::generate().expect("a key"));
    let certificate = ada().signed_by(&key, &ours).expect("a certificate");
    let der: &[u8] = certificate.der();
    for (name, shown, expected) in [
        ("control", shown(&[der], &key, &handshake(CLIENT_CONTEXT)), "certificate:ada@example.com"),
        (
            "another key",
            shown(&[der], &thief, &handshake(CLIENT_CONTEXT)),
            "its key did not sign the handshake",
        ),
        (
            "what a server signs",
            shown(&[der], &key, &handshake(b"TLS 1.3, server CertificateVerify\0")),
            "its key did not sign the handshake",
        ),
        ("the hash alone", shown(&[der], &key, &HASH), "its key did not sign the handshake"),
        ("none", shown(&[], &key, &HASH), "there is none"),
        ("no certificate", shown(&[b"x"], &key, &HASH), "it cannot be parsed as X.509 version 3"),
    ] {
        assert_eq!(outcome(&verifier, &shown), expected, "{name}");
    }
    let mut wrong = shown(&[der], &key, &handshake(CLIENT_CONTEXT));
    wrong.scheme = 0x0401;
    assert_eq!(outcome(&verifier, &wrong), "its key signed with an unknown algorithm");
    wrong.handshake.0.pop();
    wrong.scheme = 0x0403;
    assert_eq!(outcome(&verifier, &wrong), "its key signed no handshake");
}

#[test]
fn a_certificate_may_be_issued_through_authorities_that_the_client_shows() {
    let root = authority("root");
    let mut between = CertificateParams::default();
    between.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    between.distinguished_name.push(DnType::CommonName, "between");
    let between = CertifiedIssuer::signed_by(between, KeyPair::generate().expect("a key"), &root);
    let between = between.expect("a certificate");
    let place = Place(tempfile::tempdir().expect("a directory"));
    let verifier = place.verifier(&root.pem(), None, CertificateName::Email);
    let key = KeyPair::generate().expect("a key");
    let own = params(&[email("ada@example.com")]).signed_by(&key, &between).expect("a certificate");
    let signed = handshake(CLIENT_CONTEXT);
    let own: &[u8] = own.der();
    let complete = shown(&[own, between.der()], &key, &signed);
    assert_eq!(outcome(&verifier, &complete), "certificate:ada@example.com");
    let incomplete = shown(&[own], &key, &signed);
    assert_eq!(outcome(&verifier, &incomplete), "no authority of the configuration has issued it");
    // A client cannot issue certificates.
    let issuer = issued(params(&[email("bo@example.com")]), &root);
    let forged = shown(&[own, issuer.own()], &key, &signed);
    assert_eq!(outcome(&verifier, &forged), "no authority of the configuration has issued it");
}

#[test]
fn a_certificate_names_its_client_once() {
    let ours = authority("ours");
    let place = Place(tempfile::tempdir().expect("a directory"));
    let (dns, uri) = (
        SanType::DnsName("laptop.example.com".try_into().expect("ASCII")),
        SanType::URI("spiffe://example.com/ada".try_into().expect("ASCII")),
    );
    let all = [email("ada@example.com"), dns, uri];
    for (kind, names, expected) in [
        (CertificateName::Email, &all[..], "certificate:ada@example.com"),
        (CertificateName::Dns, &all, "certificate:laptop.example.com"),
        (CertificateName::Uri, &all, "certificate:spiffe://example.com/ada"),
        (CertificateName::Uri, &all[..2], "it has no name of the configured kind"),
        (CertificateName::Email, &[], "it has no alternative names"),
        (
            CertificateName::Email,
            &[email("ada@example.com"), email("bo@example.com")],
            "it has more than one name of the configured kind",
        ),
        (
            CertificateName::Email,
            &[email("ada lovelace@example.com")],
            "its name must have 1 to 52 printable ASCII characters, without spaces",
        ),
    ] {
        let verifier = place.verifier(&ours.pem(), None, kind);
        assert_eq!(outcome(&verifier, &issued(params(names), &ours)), expected, "{names:?}");
    }
}

#[test]
fn no_two_names_are_one_in_a_policy() {
    let ours = authority("ours");
    let place = Place(tempfile::tempdir().expect("a directory"));
    let verifier = place.verifier(&ours.pem(), None, CertificateName::Email);
    let of_length = |chars: usize| format!("{}@example.com", "a".repeat(chars - "@example.com".len()));
    let longest = of_length(NAME_CHARS_MAX);
    assert_eq!(
        outcome(&verifier, &issued(params(&[email(&longest)]), &ours)),
        format!("certificate:{longest}")
    );
    let longer = of_length(NAME_CHARS_MAX + 1);
    let refused = "its name must have 1 to 52 printable ASCII characters, without spaces";
    assert_eq!(outcome(&verifier, &issued(params(&[email(&longer)]), &ours)), refused);
}

#[test]
fn changed_files_count_from_the_next_request_on() {
    let (ours, other) = (authority("ours"), authority("other"));
    let place = Place(tempfile::tempdir().expect("a directory"));
    let verifier = place.verifier(&ours.pem(), None, CertificateName::Email);
    let ada = issued(params(&[email("ada@example.com")]), &ours);
    let path = place.0.path().join("ca.pem");
    let replace = |text: &str| {
        std::fs::write(place.0.path().join("new"), text).expect("written");
        std::fs::rename(place.0.path().join("new"), &path).expect("renamed");
    };
    assert_eq!(outcome(&verifier, &ada), "certificate:ada@example.com");
    replace(&other.pem());
    assert_eq!(outcome(&verifier, &ada), "no authority of the configuration has issued it");
    replace("nothing");
    assert_eq!(outcome(&verifier, &ada), "AuthoritiesUnreadable");
    std::fs::remove_file(&path).expect("removed");
    assert_eq!(outcome(&verifier, &ada), "AuthoritiesUnreadable");
    replace(&ours.pem());
    assert_eq!(outcome(&verifier, &ada), "certificate:ada@example.com");
}
