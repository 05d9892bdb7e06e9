//! The file of tokens: who was given one, and its hash. The command line writes it, and a running Lockhouse looks at it for
//! every request, so that a token that is revoked counts for nothing from then on.

mod file;

use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant, SystemTime};

use lockhouse_base::principal::{Grant, Principal, Standing};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use file::Stamp;
pub use file::{TokenFile, TokenFileError};

use super::refused::Why;
use super::token::{Digest, Token};

/// How often it is looked whether somebody's token was revoked who asks for nothing more.
const EVERY: Duration = Duration::from_secs(1);

/// The name that a token was given, by which the policy and the audit log know its holder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TokenName(String);

impl TokenName {
    const CHARS_MAX: usize = 64;

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What cannot be the name of a token.
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

/// A token that somebody was given.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Issued {
    pub name: TokenName,
    #[serde(with = "file::hex")]
    pub(super) sha256: Digest,
    /// Seconds since 1970, as all times here.
    pub created: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<u64>,
    /// Of what the policy permits, this alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<Vec<String>>,
}

impl Issued {
    /// `valid`, `expired` or `revoked`.
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

/// The tokens that count now.
#[derive(Debug)]
pub(super) struct Tokens {
    file: TokenFile,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Of the file that was read last.
    stamp: Option<Stamp>,
    issued: Vec<Issued>,
    /// Why they are not known, and when that was found.
    fault: Option<(TokenFileError, Instant)>,
    /// What is cancelled when a token counts no more.
    holders: HashMap<Digest, Grant>,
}

impl Tokens {
    pub(super) fn new(file: TokenFile) -> Self {
        let tokens = Self { file, known: Mutex::default() };
        tokens.look();
        tokens
    }

    /// Looks again and again, for those who hold a connection and ask for nothing.
    pub(super) async fn watch(&self) {
        let mut every = tokio::time::interval(EVERY);
        loop {
            every.tick().await;
            self.look();
            let mut known = self.known.lock();
            known.end_those_that_count_no_more();
        }
    }

    /// Who holds the token.
    pub(super) fn principal(&self, token: &str) -> Result<Principal, Why> {
        self.look();
        let Some(token) = Token::read(token) else { return Err(Why::NoToken) };
        let digest = token.digest();
        let mut known = self.known.lock();
        if known.fault.is_some() {
            return Err(Why::TokensUnreadable);
        }
        // All are compared, each in the same time.
        let mut found = None;
        for issued in &known.issued {
            if aws_lc_rs::constant_time::verify_slices_are_equal(&issued.sha256, &digest).is_ok() {
                found = Some(issued);
            }
        }
        let Some(issued) = found.cloned() else { return Err(Why::UnknownToken) };
        match issued.state(SystemTime::now()) {
            "revoked" => return Err(Why::RevokedToken),
            "expired" => return Err(Why::ExpiredToken),
            _ => {}
        }
        let over = known.holders.entry(digest).or_default().clone();
        let name = issued.name.as_str();
        Ok(Principal::proven(&format!("token:{name}"), name, issued.only, Standing::Revocable(over)))
    }

    /// Takes in what has changed.
    fn look(&self) {
        let mut known = self.known.lock();
        match self.file.stamp() {
            Ok(stamp) if known.holds(stamp, Instant::now()) => return,
            Ok(stamp) => match self.file.read() {
                Ok(issued) => *known = Known { stamp, issued, fault: None, ..std::mem::take(&mut known) },
                Err(fault) => known.fail(stamp, fault),
            },
            Err(fault) => known.fail(None, fault),
        }
        known.end_those_that_count_no_more();
    }
}

impl Known {
    /// Whether what is known is of this state of the file. A fault is looked at again after a while, since it may pass
    /// without a change of the file, but not for every request: strangers send those, too.
    fn holds(&self, stamp: Option<Stamp>, now: Instant) -> bool {
        let is_recent =
            |(_, found): &(TokenFileError, Instant)| now.saturating_duration_since(*found) < EVERY;
        stamp == self.stamp && self.fault.as_ref().is_none_or(is_recent)
    }

    /// Nobody is admitted until it can be read again; who was admitted may go on with what is under way.
    fn fail(&mut self, stamp: Option<Stamp>, fault: TokenFileError) {
        if self.fault.as_ref().is_none_or(|(told, _)| told.to_string() != fault.to_string()) {
            tracing::error!("no token is accepted: {fault}");
        }
        self.stamp = stamp;
        self.fault = Some((fault, Instant::now()));
    }

    fn end_those_that_count_no_more(&mut self) {
        if self.fault.is_some() {
            return;
        }
        let now = SystemTime::now();
        let valid = self.issued.iter().filter(|issued| issued.state(now) == "valid");
        let valid: HashSet<Digest> = valid.map(|issued| issued.sha256).collect();
        self.holders.retain(|digest, over| {
            let counts = valid.contains(digest);
            if !counts {
                over.revoke();
            }
            counts
        });
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn place() -> (tempfile::TempDir, TokenFile, Tokens) {
        let directory = tempfile::tempdir().expect("a directory");
        let file = TokenFile::at(directory.path().join("below/tokens.json"));
        let tokens = Tokens::new(file.clone());
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
    fn a_token_without_a_record_is_not_made() {
        let (_directory, file, _) = place();
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
    fn a_token_counts_from_when_it_is_made_until_it_is_revoked() {
        let (_directory, file, tokens) = place();
        let one = create(&file, "one", None, None).expect("a token");
        let two = create(&file, "two", None, Some(vec!["files".into()])).expect("a token");
        let principal = |token: &Token| tokens.principal(token.reveal());
        assert_eq!(principal(&one).expect("admitted").name(), Some("token:one"));
        assert_eq!(principal(&two).expect("admitted").only(), Some(&["files".to_owned()][..]));
        let admitted = principal(&one).expect("admitted");
        assert!(file.revoke(&name("one")).expect("written"));
        assert_eq!(principal(&one).expect_err("revoked"), Why::RevokedToken);
        assert!(admitted.revoked().now_or_never().is_some());
        assert!(principal(&two).is_ok());
        assert!(!file.revoke(&name("one")).expect("written"), "once");
        assert_eq!(principal(&Token::new().expect("a token")).expect_err("unknown"), Why::UnknownToken);
        assert_eq!(tokens.principal("lh_x").expect_err("none"), Why::NoToken);
    }

    #[test]
    fn a_name_is_given_once_and_again_when_its_token_counts_no_more() {
        let (_directory, file, tokens) = place();
        let a_while_ago = SystemTime::now() - Duration::from_secs(60);
        let first = create(&file, "one", Some(a_while_ago), None).expect("a token");
        assert_eq!(tokens.principal(first.reveal()).expect_err("expired"), Why::ExpiredToken);
        let second = create(&file, "one", None, None).expect("again");
        assert!(create(&file, "one", None, None).is_err(), "there is one");
        assert!(tokens.principal(second.reveal()).is_ok());
        assert_eq!(file.read().expect("readable").len(), 2);
    }

    #[test]
    fn nobody_is_admitted_by_a_file_that_cannot_be_trusted() {
        use std::os::unix::fs::PermissionsExt;
        let (directory, file, tokens) = place();
        let token = create(&file, "one", None, None).expect("a token");
        let path = directory.path().join("below/tokens.json");
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        let admitted = tokens.principal(token.reveal()).expect("admitted");
        let whole = std::fs::read(&path).expect("readable");
        for content in ["", "{", r#"{"version":1}"#, r#"{"version":2,"tokens":[]}"#] {
            std::fs::write(&path, content).expect("written");
            assert_eq!(tokens.principal(token.reveal()).expect_err(content), Why::TokensUnreadable);
        }
        std::fs::write(&path, &whole).expect("written");
        assert!(tokens.principal(token.reveal()).is_ok());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).expect("changed");
        assert_eq!(tokens.principal(token.reveal()).expect_err("anybody's"), Why::TokensUnreadable);
        assert!(admitted.revoked().now_or_never().is_none());
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(tokens.principal(token.reveal()).expect_err("none"), Why::UnknownToken);
        assert!(admitted.revoked().now_or_never().is_some());
    }

    #[test]
    fn a_fault_holds_for_its_state_of_the_file_and_is_looked_at_again_after_a_while() {
        let (mut known, now) = (Known::default(), Instant::now());
        let [damaged, other] = [1, 2].map(|inode| Some((1, inode, 1, 1, 1, 1, 1)));
        known.fail(damaged, TokenFileError::Damaged { path: "tokens.json".into() });
        assert!(known.holds(damaged, now));
        assert!(!known.holds(other, now), "the file has changed");
        assert!(!known.holds(damaged, now + EVERY * 2), "it may have been a fault that passes");
        let known = Known { stamp: other, ..Known::default() };
        assert!(known.holds(other, now + EVERY * 2), "what was read holds until the file changes");
    }

    #[test]
    fn names_are_fit_for_a_policy() {
        for good in ["a", "Laptop-2.home_x", &"x".repeat(64)] {
            assert!(good.parse::<TokenName>().is_ok(), "{good}");
        }
        for bad in ["", "-a", ".", "a b", "a:b", "a@b", "a*", "é", &"x".repeat(65)] {
            assert!(bad.parse::<TokenName>().is_err(), "{bad}");
        }
    }
}
