//! Invariants of the verification of bearer tokens that must hold for every input. The function takes bytes, panics when an invariant is violated, and returns
//! the kinds of results that the input produced. An ordinary test passes the seeds, and changes of them, to the same function, and checks that these inputs
//! cover all kinds of results.

mod seeds;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_access::{
    AllowedUsers, AuthMethod, AuthMode, AuthSettings, Authenticator, DpopUse, Evidence, KeySource,
    OauthSettings, TokenFile, algorithm,
};
use lockhouse_messages::AccessRefusal;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use url::Url;

pub use seeds::seeds;

/// The names of the kinds of results that an input produced.
pub type Coverage = BTreeSet<String>;

thread_local! {
    static ACCESS: Access = Access::new();
}

/// An authenticator that has no token of Lockhouse's own and one key of an authorization server.
struct Access {
    runtime: Runtime,
    authenticator: Arc<Authenticator>,
    /// The beginnings, up to the signature, of the tokens that the authorization server has signed.
    signed: Vec<String>,
    _directory: TempDir,
}

impl Access {
    fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let directory = tempfile::tempdir().expect("a directory");
        let keys = directory.path().join("keys.json");
        std::fs::write(&keys, seeds::key_set()).expect("a file");
        let issuer = Url::parse(seeds::ISSUER).expect("a URL");
        let oauth = OauthSettings {
            takes_certificates: true,
            issuer: issuer.clone(),
            issuer_text: seeds::ISSUER.to_owned(),
            audience: seeds::AUDIENCE.to_owned(),
            resource: issuer,
            keys: KeySource::File(keys),
            scopes: [("run".to_owned(), vec!["*".to_owned()])].into(),
            algorithms: vec![algorithm("EdDSA").expect("an algorithm")],
            dpop: DpopUse::Accepted,
            leeway: Duration::from_secs(60),
            refetch: Duration::from_secs(3_600),
        };
        let settings = AuthSettings {
            certificates: None,
            mode: AuthMode::Methods(vec![AuthMethod::Token, AuthMethod::Oauth]),
            tokens: Some(TokenFile::at(directory.path().join("tokens.json"))),
            oauth: Some(oauth),
            users: AllowedUsers::resolve(Some(&[])).expect("no users"),
        };
        let authenticator = runtime.block_on(async { Authenticator::new(settings) }).expect("valid settings");
        let beginning = |token: String| token.rsplit_once('.').map(|(beginning, _)| beginning.to_owned());
        let signed = seeds::valid_tokens().into_iter().filter_map(beginning).collect();
        Self { runtime, authenticator, signed, _directory: directory }
    }
}

/// Verifies a bearer token. Only those are accepted that the authorization server has signed.
pub fn bearer_tokens(bytes: &[u8]) -> Coverage {
    let Ok(token) = std::str::from_utf8(bytes) else { return Coverage::new() };
    let kind = ACCESS.with(|access| {
        let verified = access.runtime.block_on(access.authenticator.authenticate(Evidence::Token(token)));
        match verified {
            Ok(_) => {
                assert!(access.signed.iter().any(|signed| token.starts_with(signed)), "{token}");
                "accepted".to_owned()
            }
            Err(AccessRefusal::InvalidJwt(reason)) => reason.into_owned(),
            Err(refusal) => format!("{refusal:?}"),
        }
    });
    Coverage::from([kind])
}
