//! The bearer tokens that Lockhouse issued: names, hashes and expiry. The command line writes the token file. A running
//! Lockhouse checks the file for changes on every request, so that a revoked token is rejected at once.

mod token_file;

use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant, SystemTime};

use lockhouse_base::files::FileVersion;
use lockhouse_base::principal::{Grant, Principal, Validity};
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use token_file::{TokenFile, TokenFileError};

use super::token_format::{Digest, Token};
use lockhouse_messages::AccessRefusal;

/// Interval at which a task checks the token file for revocations, in addition to the check on each request. If the
/// file cannot be read, the error is cached for the same time.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of tokens that were revoked on other hosts and that this host remembers.
/// Bound: hosts of a cluster.
const REVOKED_ELSEWHERE_MAX: usize = 65_536;

/// The name of a token, by which the policy and the audit log know its client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TokenName(String);

impl TokenName {
    const CHARS_MAX: usize = 64;

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The error for a text that is not a valid name of a token.
#[derive(Debug, Error)]
#[error(
    "the name of a token has 1 to {} letters, digits, '-', '_' and '.', and begins with a letter or digit",
    TokenName::CHARS_MAX
)]
pub struct InvalidTokenName;

impl TryFrom<String> for TokenName {
    type Error = InvalidTokenName;

    fn try_from(name: String) -> Result<Self, InvalidTokenName> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let begins = name.starts_with(|first: char| first.is_ascii_alphanumeric());
        match begins && name.len() <= Self::CHARS_MAX && name.bytes().all(fits) {
            true => Ok(Self(name)),
            false => Err(InvalidTokenName),
        }
    }
}

impl std::str::FromStr for TokenName {
    type Err = InvalidTokenName;

    fn from_str(name: &str) -> Result<Self, InvalidTokenName> {
        Self::try_from(name.to_owned())
    }
}

impl From<TokenName> for String {
    fn from(name: TokenName) -> Self {
        name.0
    }
}

/// An issued token, as the token file stores it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRecord {
    pub name: TokenName,
    #[serde(with = "token_file::hex")]
    pub(super) sha256: Digest,
    /// When the token was created, in seconds since 1970-01-01 UTC.
    pub created: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<u64>,
    /// The upstream servers and tools that the token grants. `None` for everything that the access policy
    /// permits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<Vec<String>>,
}

impl TokenRecord {
    /// Returns the state of the token at the time `now`: `valid`, `expired` or `revoked`.
    pub fn state(&self, now: SystemTime) -> &'static str {
        match (self.revoked, self.expires) {
            (Some(_), _) => "revoked",
            (None, Some(expires)) if expires <= seconds(now) => "expired",
            _ => "valid",
        }
    }
}

pub(super) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Verifies bearer tokens against the token file, and reloads the file when it changes.
#[derive(Debug)]
pub(super) struct TokenStore {
    file: TokenFile,
    cache: Mutex<TokenCache>,
}

#[derive(Debug, Default)]
struct TokenCache {
    /// The version of the token file at the last attempt to read it. `None` if there was no file, or if its version
    /// could not be determined.
    version: Option<FileVersion>,
    issued: Vec<TokenRecord>,
    /// Why the token file could not be read, and when that was found. `None` if it could be read.
    fault: Option<(TokenFileError, Instant)>,
    /// Digests of tokens that were revoked on other hosts of the cluster.
    revoked_elsewhere: HashSet<Digest>,
    /// For each token in use, the revocable authorization of its client's connections. When the token is
    /// revoked or expires, the authorization is revoked, which ends the connections.
    grants: HashMap<Digest, Grant>,
}

impl TokenStore {
    pub(super) fn new(file: TokenFile) -> Self {
        let tokens = Self { file, cache: Mutex::default() };
        tokens.refresh();
        tokens
    }

    /// Checks the token file every second, to end the connections of clients whose tokens were revoked or have expired.
    pub(super) async fn watch(&self) {
        let mut every = tokio::time::interval(RECHECK_INTERVAL);
        loop {
            every.tick().await;
            self.refresh();
            let mut cache = self.cache.lock();
            cache.revoke_invalid();
        }
    }

    /// Verifies a bearer token, and returns the principal (client identity) that it authenticates.
    pub(super) fn principal(&self, token: &str) -> Result<Principal, AccessRefusal> {
        self.refresh();
        let Some(token) = Token::parse(token) else { return Err(AccessRefusal::MalformedToken) };
        let digest = token.digest();
        let mut cache = self.cache.lock();
        if cache.fault.is_some() {
            return Err(AccessRefusal::TokensUnreadable);
        }
        // Compares with every token, in constant time.
        let mut found = None;
        for issued in &cache.issued {
            if aws_lc_rs::constant_time::verify_slices_are_equal(&issued.sha256, &digest).is_ok() {
                found = Some(issued);
            }
        }
        let Some(issued) = found.cloned() else { return Err(AccessRefusal::UnknownToken) };
        if cache.revoked_elsewhere.contains(&digest) {
            return Err(AccessRefusal::RevokedToken);
        }
        match issued.state(SystemTime::now()) {
            "revoked" => return Err(AccessRefusal::RevokedToken),
            "expired" => return Err(AccessRefusal::ExpiredToken),
            _ => {}
        }
        let grant = cache.grants.entry(digest).or_default().clone();
        let name = issued.name.as_str();
        Ok(Principal::authenticated(&format!("token:{name}"), name, issued.only, Validity::Revocable(grant)))
    }

    /// Returns the digests of the tokens that the file says were revoked.
    pub(super) fn revoked(&self) -> Vec<Digest> {
        self.refresh();
        let cache = self.cache.lock();
        cache.issued.iter().filter(|issued| issued.revoked.is_some()).map(|issued| issued.sha256).collect()
    }

    /// Revokes a token that was revoked on another host, and ends the connections of its client.
    pub(super) fn revoke_elsewhere(&self, digest: Digest) {
        let mut cache = self.cache.lock();
        if cache.revoked_elsewhere.contains(&digest) {
            return;
        }
        // A host that was taken over can revoke tokens that do not exist. Those of the file are always revoked.
        let is_issued = cache.issued.iter().any(|issued| issued.sha256 == digest);
        if is_issued || cache.revoked_elsewhere.len() < REVOKED_ELSEWHERE_MAX {
            cache.revoked_elsewhere.insert(digest);
            cache.revoke_invalid();
        } else {
            tracing::error!("a token that was revoked on another host is still accepted here: too many are");
        }
    }

    /// Reloads the token file if it has changed.
    fn refresh(&self) {
        let mut cache = self.cache.lock();
        match self.file.file_version() {
            Ok(version) if cache.is_current(version, Instant::now()) => return,
            Ok(version) => match self.file.read() {
                Ok(issued) => {
                    *cache = TokenCache { version, issued, fault: None, ..std::mem::take(&mut cache) }
                }
                Err(fault) => cache.set_fault(version, fault),
            },
            Err(fault) => cache.set_fault(None, fault),
        }
        cache.revoke_invalid();
    }
}

impl TokenCache {
    /// Returns whether the cache reflects this version of the token file. An error in reading the file is cached for
    /// one second: not longer, because its cause may disappear without a change of the file, and not shorter, because
    /// unauthenticated requests must not each cause a read.
    fn is_current(&self, version: Option<FileVersion>, now: Instant) -> bool {
        let is_recent =
            |(_, found): &(TokenFileError, Instant)| now.saturating_duration_since(*found) < RECHECK_INTERVAL;
        version == self.version && self.fault.as_ref().is_none_or(is_recent)
    }

    /// Records that the token file cannot be read. Until it can be read again, no request is authenticated by a token.
    /// Active runs continue.
    fn set_fault(&mut self, version: Option<FileVersion>, fault: TokenFileError) {
        if self.fault.as_ref().is_none_or(|(known, _)| known.to_string() != fault.to_string()) {
            tracing::error!("no token is accepted: {fault}");
        }
        self.version = version;
        self.fault = Some((fault, Instant::now()));
    }

    fn revoke_invalid(&mut self) {
        if self.fault.is_some() {
            return;
        }
        let now = SystemTime::now();
        let valid = self.issued.iter().filter(|issued| issued.state(now) == "valid");
        let valid = valid.filter(|issued| !self.revoked_elsewhere.contains(&issued.sha256));
        let valid: HashSet<Digest> = valid.map(|issued| issued.sha256).collect();
        self.grants.retain(|digest, grant| {
            let counts = valid.contains(digest);
            if !counts {
                grant.revoke();
            }
            counts
        });
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn store() -> (tempfile::TempDir, TokenFile, TokenStore) {
        let directory = tempfile::tempdir().expect("a directory");
        let file = TokenFile::at(directory.path().join("below/tokens.json"));
        let tokens = TokenStore::new(file.clone());
        (directory, file, tokens)
    }

    fn name(name: &str) -> TokenName {
        name.parse().expect("a name")
    }

    fn create(
        file: &TokenFile,
        of: &str,
        expires: Option<SystemTime>,
        only: Option<Vec<String>>,
    ) -> Result<Token, TokenFileError> {
        file.create(&name(of), expires, only, || Ok(()))
    }

    #[test]
    fn a_token_is_not_created_if_recording_fails() {
        let (_directory, file, _) = store();
        let full: Result<(), Box<dyn std::error::Error>> = Err("the disk is full".into());
        let refused = file.create(&name("one"), None, None, || full).expect_err("no record");
        assert_eq!(refused.to_string(), "the disk is full");
        assert!(file.read().expect("readable").is_empty());
        let mut is_recorded = false;
        create(&file, "one", None, None).expect("a token");
        let again = file.create(&name("one"), None, None, || {
            is_recorded = true;
            Ok::<(), TokenFileError>(())
        });
        assert!(again.is_err() && !is_recorded, "what is refused anyway is not recorded as created");
    }

    #[test]
    fn a_token_is_valid_from_creation_to_revocation() {
        let (_directory, file, tokens) = store();
        let one = create(&file, "one", None, None).expect("a token");
        let two = create(&file, "two", None, Some(vec!["files".into()])).expect("a token");
        let principal = |token: &Token| tokens.principal(token.reveal());
        assert_eq!(principal(&one).expect("admitted").name(), Some("token:one"));
        assert_eq!(principal(&two).expect("admitted").only(), Some(&["files".to_owned()][..]));
        let admitted = principal(&one).expect("admitted");
        assert!(file.revoke(&name("one")).expect("written"));
        assert_eq!(principal(&one).expect_err("revoked"), AccessRefusal::RevokedToken);
        assert!(admitted.revoked().now_or_never().is_some());
        assert!(principal(&two).is_ok());
        assert!(!file.revoke(&name("one")).expect("written"), "once");
        assert_eq!(
            principal(&Token::new().expect("a token")).expect_err("unknown"),
            AccessRefusal::UnknownToken
        );
        assert_eq!(tokens.principal("lh_x").expect_err("none"), AccessRefusal::MalformedToken);
    }

    #[test]
    fn a_token_name_can_be_reused_after_its_token_expires() {
        let (_directory, file, tokens) = store();
        let a_while_ago = SystemTime::now() - Duration::from_secs(60);
        let first = create(&file, "one", Some(a_while_ago), None).expect("a token");
        assert_eq!(tokens.principal(first.reveal()).expect_err("expired"), AccessRefusal::ExpiredToken);
        let second = create(&file, "one", None, None).expect("again");
        assert!(create(&file, "one", None, None).is_err(), "there is one");
        assert!(tokens.principal(second.reveal()).is_ok());
        assert_eq!(file.read().expect("readable").len(), 2);
    }

    #[test]
    fn an_untrusted_token_file_authenticates_nobody() {
        use std::os::unix::fs::PermissionsExt;
        let (directory, file, tokens) = store();
        let token = create(&file, "one", None, None).expect("a token");
        let path = directory.path().join("below/tokens.json");
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        let admitted = tokens.principal(token.reveal()).expect("admitted");
        let whole = std::fs::read(&path).expect("readable");
        for content in ["", "{", r#"{"version":1}"#, r#"{"version":2,"tokens":[]}"#] {
            std::fs::write(&path, content).expect("written");
            assert_eq!(tokens.principal(token.reveal()).expect_err(content), AccessRefusal::TokensUnreadable);
        }
        std::fs::write(&path, &whole).expect("written");
        assert!(tokens.principal(token.reveal()).is_ok());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).expect("changed");
        assert_eq!(tokens.principal(token.reveal()).expect_err("anybody's"), AccessRefusal::TokensUnreadable);
        assert!(admitted.revoked().now_or_never().is_none());
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(tokens.principal(token.reveal()).expect_err("none"), AccessRefusal::UnknownToken);
        assert!(admitted.revoked().now_or_never().is_some());
    }

    #[test]
    fn a_read_error_is_cached_until_the_file_changes_or_a_second_passes() {
        let (mut cache, now) = (TokenCache::default(), Instant::now());
        let [damaged, other] = ["/", "/proc"].map(|path| FileVersion::of(path.as_ref()));
        cache.set_fault(damaged, TokenFileError::Damaged { path: "tokens.json".into() });
        assert!(cache.is_current(damaged, now));
        assert!(!cache.is_current(other, now), "the file has changed");
        assert!(
            !cache.is_current(damaged, now + RECHECK_INTERVAL * 2),
            "it may have been a fault that passes"
        );
        let cache = TokenCache { version: other, ..TokenCache::default() };
        assert!(
            cache.is_current(other, now + RECHECK_INTERVAL * 2),
            "what was read is current until the file changes"
        );
    }

    #[test]
    fn only_valid_token_names_are_accepted() {
        for good in ["a", "Laptop-2.home_x", &"x".repeat(64)] {
            assert!(good.parse::<TokenName>().is_ok(), "{good}");
        }
        for bad in ["", "-a", ".", "a b", "a:b", "a@b", "a*", "é", &"x".repeat(65)] {
            assert!(bad.parse::<TokenName>().is_err(), "{bad}");
        }
    }
}
