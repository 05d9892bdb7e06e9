//! Tests of client certificates of TLS: as credentials of their own, and as what OAuth tokens are bound to (RFC 8705), also
//! through a proxy that passes them on (RFC 9440).

use aws_lc_rs::digest::{SHA256, digest};
use data_encoding::{BASE64, BASE64URL_NOPAD};
use lockhouse_tests::{Daemon, HttpClient, Issuer, Lockhouse, Signer, Table, equal};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertificateRevocationListParams, CertifiedIssuer,
    DnType, ExtendedKeyUsagePurpose, IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SanType,
    SerialNumber,
};
use serde_json::{Value, json};

use super::{error_description, list_tools, status_and_error, token};
use crate::http::tls::{certificate_file, install_certificate};

const RESOURCE: &str = "https://lockhouse.example.com/mcp";
pub(crate) const TLS: &str = "[http.tls]\ncertificate = \"daemon.pem\"\nkey = \"daemon.key\"\n";

pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// The certificate and the key of a client.
pub(crate) struct Client {
    certificate: Certificate,
    key: KeyPair,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, name);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Returns the certificate of the authority.
    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(crate) fn issue(&self, email: &str, serial: u64) -> Client {
        let key = KeyPair::generate().unwrap();
        Client { certificate: params(email, serial).signed_by(&key, &self.0).unwrap(), key }
    }

    /// Returns a list of revoked certificates that is valid for these hours.
    fn revoke(&self, serials: &[u64], hours: i64) -> String {
        let now = std::time::SystemTime::now();
        let hour = std::time::Duration::from_hours(1);
        let until = if hours > 0 { now + hour } else { now - hour };
        let revoked = serials.iter().map(|serial| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: (now - hour).into(),
            reason_code: None,
            invalidity_date: None,
        });
        let params = CertificateRevocationListParams {
            this_update: (now - 2 * hour).into(),
            next_update: until.into(),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.0).unwrap().pem().unwrap()
    }
}

fn params(email: &str, serial: u64) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.serial_number = Some(SerialNumber::from(serial));
    params.subject_alt_names = vec![SanType::Rfc822Name(email.try_into().unwrap())];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params
}

impl Client {
    fn self_signed(email: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        Self { certificate: params(email, 1).self_signed(&key).unwrap(), key }
    }

    fn identity(&self) -> reqwest::Identity {
        let pem = format!("{}{}", self.key.serialize_pem(), self.certificate.pem());
        reqwest::Identity::from_pem(pem.as_bytes()).unwrap()
    }

    fn thumbprint(&self) -> String {
        BASE64URL_NOPAD.encode(digest(&SHA256, self.certificate.der()).as_ref())
    }
}

/// Returns an HTTP client that shows this certificate on a new connection.
pub(crate) fn connect(daemon: &Daemon, shown: Option<&Client>) -> HttpClient {
    let trusted = std::fs::read(certificate_file("daemon.pem")).unwrap();
    let trusted = reqwest::Certificate::from_pem(&trusted).unwrap();
    let mut client = reqwest::Client::builder().no_proxy().tls_certs_only([trusted]);
    if let Some(shown) = shown {
        client = client.identity(shown.identity());
    }
    HttpClient::with_client(client.build().unwrap(), &daemon.url("/mcp"), None)
}

pub(crate) fn with_token(client: HttpClient, token: &str) -> HttpClient {
    client.with("Authorization", &format!("Bearer {token}"))
}

/// Returns the status of a request, and the reason of a refusal.
async fn outcome(client: HttpClient) -> String {
    let reply = list_tools(&client).await;
    format!("{} {}", status_and_error(&reply), error_description(&reply)).trim_end().to_owned()
}

/// Returns the client in the record of a run.
async fn recorded_name(lockhouse: &Lockhouse, client: &HttpClient) -> Value {
    let ran = client.run_code("python", "6 * 7").await;
    assert_eq!(ran["value"], 42, "{ran}");
    let records = lockhouse.records();
    let run = records.iter().rfind(|record| record["event"] == "execution").expect("a record");
    run["client"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_whom_the_certificate_of_its_connection_names() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let lockhouse = Lockhouse::new()
        .config(&format!(
            "[http]\nauth = [\"certificate\", \"token\"]\n[http.client_certificates]\nauthorities = \"ca.pem\"\nrevoked = \"ca.crl\"\n{TLS}"
        ))
        .policy(
            "version = 1\n[roles.staff]\nmembers = [\"certificate:ada@example.com\", \"certificate:eve@example.com\", \"desk\"]\nmay = [\"run\"]\n",
        );
    install_certificate(&lockhouse, "daemon");
    lockhouse.file("config/lockhouse/ca.pem", ours.pem());
    lockhouse.file("config/lockhouse/ca.crl", ours.revoke(&[66], 1));
    let desk = token(&lockhouse, &["desk"]);
    let daemon = lockhouse.daemon().await;
    let [ada, bo, eve] = [("ada@example.com", 1), ("bo@example.com", 2), ("eve@example.com", 66)]
        .map(|(name, n)| ours.issue(name, n));
    let (stranger, own) = (other.issue("ada@example.com", 1), Client::self_signed("ada@example.com"));
    let mut table = Table::new("client certificates");

    let refused =
        |reason: &str| format!("401 invalid_certificate the client certificate is not accepted: {reason}");
    let unissued = refused("no authority of the configuration has issued it");
    for (name, client, expected) in [
        ("of a member", connect(&daemon, Some(&ada)), "200".to_owned()),
        (
            "of nobody in a role",
            connect(&daemon, Some(&bo)),
            "403 insufficient_scope this access does not permit running code and calling tools".to_owned(),
        ),
        ("revoked", connect(&daemon, Some(&eve)), refused("it was revoked")),
        ("of another authority", connect(&daemon, Some(&stranger)), unissued.clone()),
        ("self-signed", connect(&daemon, Some(&own)), unissued),
        (
            "none",
            connect(&daemon, None),
            "401 unauthorized this server requires authentication: send the header Authorization: Bearer TOKEN".to_owned(),
        ),
        ("none, with a token", with_token(connect(&daemon, None), &desk), "200".to_owned()),
        ("a member's, with a wrong token", with_token(connect(&daemon, Some(&ada)), "x"), {
            "401 invalid_token this is not a token of this server, or it was not copied completely".to_owned()
        }),
        (
            "in a header",
            connect(&daemon, None).with("Client-Cert", &format!(":{}:", BASE64.encode(ada.certificate.der()))),
            "401 unauthorized this server requires authentication: send the header Authorization: Bearer TOKEN".to_owned(),
        ),
    ] {
        table.row(name, equal(outcome(client).await, expected));
    }
    let ada_connected = connect(&daemon, Some(&ada));
    table.row(
        "the name in records",
        equal(recorded_name(&lockhouse, &ada_connected).await, json!("certificate:ada@example.com")),
    );
    let both = with_token(connect(&daemon, Some(&ada)), &desk);
    table.row("the name with a token", equal(recorded_name(&lockhouse, &both).await, json!("desk")));

    lockhouse.file("config/lockhouse/ca.crl", ours.revoke(&[1, 66], 1));
    table.row(
        "revoked on an open connection",
        equal(outcome(ada_connected.clone()).await, refused("it was revoked")),
    );
    lockhouse.file("config/lockhouse/ca.crl", ours.revoke(&[66], -1));
    table.row(
        "a list that has expired",
        equal(
            outcome(ada_connected.clone()).await,
            refused("the list of revoked certificates has expired, so the operator must renew it"),
        ),
    );
    lockhouse.file("config/lockhouse/ca.crl", "");
    table.row(
        "no list in its file",
        equal(
            outcome(ada_connected.clone()).await,
            "503 temporarily_unavailable no client certificate can be checked now; the log of the server says why".to_owned(),
        ),
    );
    lockhouse.file("config/lockhouse/ca.crl", ours.revoke(&[66], 1));
    table.row("control: a new list", equal(outcome(ada_connected).await, "200".to_owned()));
    table.finish();
}

fn oauth(issuer: &Issuer, more: &str) -> String {
    format!(
        "[http.oauth]\nissuer = \"{}\"\naudience = \"{RESOURCE}\"\n{more}[http.oauth.scopes]\n\"mcp:all\" = [\"*\"]\n",
        issuer.name()
    )
}

const NO_CERTIFICATE: &str = "401 invalid_token the token is bound to a client certificate, and the connection has none: send it as \
    Authorization: Bearer on a connection with this certificate";
const ANOTHER: &str = "401 invalid_token the token is bound to another client certificate";

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_bound_to_a_certificate_is_accepted_on_its_connections_only() {
    let (signer, ada, thief) =
        (Signer::es256("one"), Client::self_signed("ada@example.com"), Client::self_signed("x@y"));
    let issuer = Issuer::start(&[&signer]);
    let mut claims = issuer.claims("ada", RESOURCE, "mcp:all");
    let unbound = signer.sign(&claims);
    claims["cnf"] = json!({"x5t#S256": ada.thumbprint()});
    let bound = signer.sign(&claims);
    claims["cnf"] = json!({"x5t#S256": ada.thumbprint(), "jkt": "k"});
    let twice = signer.sign(&claims);
    let mut table = Table::new("tokens that are bound to a certificate");

    for (uses, unbound_is) in [
        ("accepted", "200"),
        (
            "required",
            "401 invalid_dpop_proof the DPoP proof is not accepted: this server accepts only tokens that are bound to a key (DPoP) or \
             to a client certificate",
        ),
    ] {
        let lockhouse = Lockhouse::new().config(&format!(
            "[http]\nauth = \"oauth\"\n[http.client_certificates]\nbound_tokens = true\n{TLS}{}",
            oauth(&issuer, &format!("dpop = \"{uses}\"\n"))
        ));
        install_certificate(&lockhouse, "daemon");
        let daemon = lockhouse.daemon().await;
        for (name, shown, token, expected) in [
            ("its certificate", Some(&ada), &bound, "200"),
            ("another certificate", Some(&thief), &bound, ANOTHER),
            ("no certificate", None, &bound, NO_CERTIFICATE),
            (
                "bound to a key too",
                Some(&ada),
                &twice,
                "401 invalid_token the token is bound to something that this server cannot verify",
            ),
            ("unbound", None, &unbound, unbound_is),
            ("unbound, with a certificate", Some(&thief), &unbound, unbound_is),
        ] {
            let client = with_token(connect(&daemon, shown), token);
            table.row(format!("{uses}: {name}"), equal(outcome(client).await, expected.to_owned()));
        }
        let without = outcome(connect(&daemon, Some(&ada))).await;
        table.row(
            format!("{uses}: the certificate alone"),
            equal(
                without.split_once(" this").map(|(status, _)| status.to_owned()),
                Some("401 unauthorized".to_owned()),
            ),
        );
        let trusted =
            reqwest::Certificate::from_pem(&std::fs::read(certificate_file("daemon.pem")).unwrap()).unwrap();
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([trusted]).build().unwrap();
        let metadata = client.get(daemon.url("/.well-known/oauth-protected-resource")).send().await.unwrap();
        let metadata: Value = metadata.json().await.unwrap();
        let announced = metadata["tls_client_certificate_bound_access_tokens"].clone();
        table.row(format!("{uses}: the metadata"), equal(announced, json!(true)));
    }
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trusted_proxy_passes_on_the_certificate_to_which_a_token_is_bound() {
    let (signer, ada, thief) =
        (Signer::es256("one"), Client::self_signed("ada@example.com"), Client::self_signed("x@y"));
    let issuer = Issuer::start(&[&signer]);
    let mut claims = issuer.claims("ada", RESOURCE, "mcp:all");
    claims["cnf"] = json!({"x5t#S256": ada.thumbprint()});
    let bound = signer.sign(&claims);
    let header = |client: &Client| format!(":{}:", BASE64.encode(client.certificate.der()));
    let escaped = |client: &Client| {
        let pem = client.certificate.pem();
        pem.bytes()
            .map(|byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            })
            .collect()
    };
    let unreadable = "400".to_owned();
    let mut table = Table::new("certificates in the header of a proxy");
    for (place, proxies, expected) in [
        (
            "trusted",
            "trusted_proxies = [\"127.0.0.1\"]\n[http.client_certificates]\nbound_tokens = true\nfrom_proxies = true\n",
            "200",
        ),
        ("trusted for addresses only", "trusted_proxies = [\"127.0.0.1\"]\n", NO_CERTIFICATE),
        (
            "another proxy is trusted",
            "trusted_proxies = [\"10.0.0.1\"]\n[http.client_certificates]\nbound_tokens = true\nfrom_proxies = true\n",
            NO_CERTIFICATE,
        ),
    ] {
        let is_read = expected == "200";
        let lockhouse =
            Lockhouse::new().config(&format!("[http]\nauth = \"oauth\"\n{proxies}{}", oauth(&issuer, "")));
        let daemon = lockhouse.daemon().await;
        let ask = |headers: &[&str]| {
            let mut client = daemon.http_client(Some(&bound));
            for header in headers {
                client = client.with("Client-Cert", header);
            }
            outcome(client)
        };
        let when_read = |read: &str| if is_read { read.to_owned() } else { NO_CERTIFICATE.to_owned() };
        table
            .row(format!("{place}: as in RFC 9440"), equal(ask(&[&header(&ada)]).await, expected.to_owned()));
        let escaped: String = escaped(&ada);
        table.row(format!("{place}: as nginx writes it"), equal(ask(&[&escaped]).await, expected.to_owned()));
        table.row(format!("{place}: another one"), equal(ask(&[&header(&thief)]).await, when_read(ANOTHER)));
        table.row(format!("{place}: none"), equal(ask(&["::"]).await, NO_CERTIFICATE.to_owned()));
        table.row(format!("{place}: garbage"), equal(ask(&["x"]).await, when_read(&unreadable)));
    }
    table.finish();
}
