//! Tests of proofs of presence, with keys that sign as an authenticator and a browser do.

use std::time::Duration;

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use lockhouse_messages::Approval;
use proptest::prelude::*;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::*;

const PORT: u16 = 4_711;
const DIGEST: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
/// The flags of an authenticator that was touched and has verified its user.
const PROVEN: u8 = 0b101;

/// An authenticator with one credential.
struct Authenticator {
    pair: Pair,
    credential: Vec<u8>,
}

enum Pair {
    Es256(EcdsaKeyPair),
    EdDsa(Ed25519KeyPair),
    Rs256(RsaKeyPair),
}

/// What an authenticator and a browser sign. Each member can be wrong.
#[derive(Clone)]
struct Signed {
    ceremony: &'static str,
    origin: String,
    is_cross_origin: bool,
    relying_party: &'static str,
    flags: u8,
    counter: u32,
    challenge: String,
}

impl Signed {
    fn new(challenge: &str) -> Self {
        Self {
            ceremony: "webauthn.get",
            origin: format!("http://localhost:{PORT}"),
            is_cross_origin: false,
            relying_party: "localhost",
            flags: PROVEN,
            counter: 0,
            challenge: challenge.to_owned(),
        }
    }

    fn client_data(&self) -> Vec<u8> {
        let json = json!({
            "type": self.ceremony, "challenge": self.challenge, "origin": self.origin,
            "crossOrigin": self.is_cross_origin, "other_keys_can_be_added_here": "1",
        });
        json.to_string().into_bytes()
    }

    fn authenticator_data(&self) -> Vec<u8> {
        let relying_party = Sha256::digest(self.relying_party);
        [&relying_party[..], &[self.flags], &self.counter.to_be_bytes()].concat()
    }
}

impl Authenticator {
    fn es256() -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).expect("a key");
        Self { pair: Pair::Es256(pair), credential: random::<20>().expect("random numbers").to_vec() }
    }

    fn id(&self) -> String {
        BASE64URL_NOPAD.encode(&self.credential)
    }

    fn public_key(&self) -> Vec<u8> {
        let der = |der: PublicKeyX509Der<'_>| der.as_ref().to_vec();
        match &self.pair {
            Pair::Es256(pair) => der(pair.public_key().as_der().expect("a public key")),
            Pair::EdDsa(pair) => der(pair.public_key().as_der().expect("a public key")),
            Pair::Rs256(pair) => der(pair.public_key().as_der().expect("a public key")),
        }
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Es256(pair) => pair.sign(&random, message).expect("a signature").as_ref().to_vec(),
            Pair::EdDsa(pair) => pair.sign(message).as_ref().to_vec(),
            Pair::Rs256(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).expect("a signature");
                signature
            }
        }
    }

    fn assertion(&self, signed: &Signed) -> KeyAssertion {
        let (client, authenticator) = (signed.client_data(), signed.authenticator_data());
        let signature = self.sign(&[&authenticator[..], &Sha256::digest(&client)[..]].concat());
        KeyAssertion {
            credential: self.id(),
            client_data: BASE64URL_NOPAD.encode(&client),
            authenticator_data: BASE64URL_NOPAD.encode(&authenticator),
            signature: BASE64URL_NOPAD.encode(&signature),
        }
    }

    fn registration(&self, code: &EnrolmentCode) -> KeyRegistration {
        let challenge = Sha256::digest(format!("lockhouse enrolment 1\0{}", code.0));
        let signed =
            Signed { ceremony: "webauthn.create", ..Signed::new(&BASE64URL_NOPAD.encode(&challenge)) };
        self.registration_of(code, &signed)
    }

    fn registration_of(&self, code: &EnrolmentCode, signed: &Signed) -> KeyRegistration {
        let signed = Signed { flags: signed.flags | 0b100_0000, ..signed.clone() };
        let length = u16::try_from(self.credential.len()).expect("short").to_be_bytes();
        let authenticator =
            [&signed.authenticator_data()[..], &[7; 16], &length, &self.credential, b"COSE"].concat();
        KeyRegistration {
            code: code.clone(),
            credential: self.id(),
            client_data: BASE64URL_NOPAD.encode(&signed.client_data()),
            authenticator_data: BASE64URL_NOPAD.encode(&authenticator),
            public_key: BASE64URL_NOPAD.encode(&self.public_key()),
            algorithm: match self.pair {
                Pair::Es256(_) => -7,
                Pair::EdDsa(_) => -8,
                Pair::Rs256(_) => -257,
            },
        }
    }
}

/// A verifier, with the directory of its keys.
struct Setup {
    verifier: PresenceVerifier,
    directory: tempfile::TempDir,
}

impl Setup {
    fn new(level: Presence) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let verifier = PresenceVerifier::new(level, Some(directory.path().join("keys.json")));
        Self { verifier, directory }
    }

    fn with_key(authenticator: &Authenticator) -> Self {
        let setup = Self::new(Presence::Key);
        setup.enrol(authenticator).expect("registered");
        setup
    }

    fn enrol(&self, authenticator: &Authenticator) -> Result<KeyListing, PresenceError> {
        let (code, _) = self.verifier.begin_enrolment().expect("a code");
        self.verifier.enrol(&authenticator.registration(&code), |_| Ok(()))
    }

    fn challenge(&self, scope: Approval) -> String {
        self.challenge_of(calls(1, DIGEST, scope))
    }

    fn challenge_of(&self, subject: ApprovalSubject) -> String {
        self.verifier.challenge(subject, PORT).expect("a challenge").challenge
    }

    /// Approves a question once.
    fn verify(&self, assertion: KeyAssertion) -> Result<Option<ProvenPresence>, PresenceError> {
        self.verify_of(&calls(1, DIGEST, Approval::Once), assertion)
    }

    fn verify_of(
        &self,
        subject: &ApprovalSubject,
        assertion: KeyAssertion,
    ) -> Result<Option<ProvenPresence>, PresenceError> {
        let proof = PresenceProof::Key(assertion);
        self.verifier.verify(subject, self.verifier.level(), Some(&proof), Some(user(1_000)))
    }
}

fn user(uid: u32) -> LocalUser {
    LocalUser { uid, pid: Some(1), login_uid: None }
}

fn calls(question: u64, digest: &str, scope: Approval) -> ApprovalSubject {
    ApprovalSubject::Calls { question, digest: digest.to_owned(), scope }
}

fn policy(digest: &str) -> ApprovalSubject {
    ApprovalSubject::Policy { digest: digest.to_owned() }
}

fn definitions(server: &str) -> ApprovalSubject {
    ApprovalSubject::Definitions { server: server.to_owned(), digest: DIGEST.to_owned() }
}

#[test]
fn a_key_approves_exactly_one_subject() {
    let authenticator = Authenticator::es256();
    let setup = Setup::with_key(&authenticator);
    let assertion = authenticator.assertion(&Signed::new(&setup.challenge(Approval::Once)));
    let proven = setup.verify(assertion.clone()).expect("accepted");
    let expected = ProvenPresence { method: "key", uid: None, credential: Some(authenticator.id()) };
    assert_eq!(proven, Some(expected), "control");
    assert_eq!(setup.verify(assertion), Err(PresenceError::UnknownChallenge), "the same again");

    let (right, other_digest) = (calls(1, DIGEST, Approval::Once), DIGEST.replace('9', "8"));
    for (name, signed, used) in [
        ("another question", right.clone(), calls(2, DIGEST, Approval::Once)),
        ("another call", right.clone(), calls(1, &other_digest, Approval::Once)),
        ("another scope", right.clone(), calls(1, DIGEST, Approval::Execution)),
        ("a policy for a call", policy(DIGEST), right.clone()),
        ("a call for a policy", right, policy(DIGEST)),
        ("another policy", policy(DIGEST), policy(&other_digest)),
        ("a policy for definitions", policy(DIGEST), definitions("git")),
        ("definitions for a policy", definitions("git"), policy(DIGEST)),
        ("definitions of another server", definitions("git"), definitions("mail")),
    ] {
        let assertion = || authenticator.assertion(&Signed::new(&setup.challenge_of(signed.clone())));
        let assertion_of_other = assertion();
        let refused = setup.verify_of(&used, assertion_of_other.clone());
        assert_eq!(refused, Err(PresenceError::OtherSubject), "{name}");
        let again = setup.verify_of(&signed, assertion_of_other);
        assert_eq!(again, Err(PresenceError::UnknownChallenge), "{name}: the challenge is used up");
        assert!(setup.verify_of(&signed, assertion()).is_ok(), "{name}: control");
    }
}

#[test]
fn everything_that_a_browser_or_a_key_signs_must_be_right() {
    let authenticator = Authenticator::es256();
    let setup = Setup::with_key(&authenticator);
    let right = || Signed::new(&setup.challenge(Approval::Once));
    let origin = |origin: &str| Signed { origin: origin.to_owned(), ..right() };
    let random_challenge = BASE64URL_NOPAD.encode(&[7; 32]);
    for (name, signed, expected) in [
        ("another port", origin("http://localhost:4712"), PresenceError::OtherOrigin),
        ("no port", origin("http://localhost"), PresenceError::OtherOrigin),
        ("a port in another form", origin("http://localhost:04711"), PresenceError::OtherOrigin),
        ("a path", origin("http://localhost:4711/"), PresenceError::OtherOrigin),
        ("TLS", origin("https://localhost:4711"), PresenceError::OtherOrigin),
        ("another host", origin("http://evil.test:4711"), PresenceError::OtherOrigin),
        ("a longer host", origin("http://localhost.evil.test:4711"), PresenceError::OtherOrigin),
        ("an address", origin("http://127.0.0.1:4711"), PresenceError::OtherOrigin),
        ("a frame", Signed { is_cross_origin: true, ..right() }, PresenceError::OtherOrigin),
        ("a registration", Signed { ceremony: "webauthn.create", ..right() }, PresenceError::OtherCeremony),
        ("another challenge", Signed::new(&random_challenge), PresenceError::UnknownChallenge),
        ("a short challenge", Signed::new("AAAA"), PresenceError::Malformed),
        ("another name", Signed { relying_party: "127.0.0.1", ..right() }, PresenceError::OtherRelyingParty),
        ("no touch", Signed { flags: 0b100, ..right() }, PresenceError::NotTouched),
        ("no PIN", Signed { flags: 0b001, ..right() }, PresenceError::NotVerified),
    ] {
        let refused = setup.verify(authenticator.assertion(&signed));
        assert_eq!(refused, Err(expected), "{name}");
    }
    let other = Authenticator::es256();
    let foreign = other.assertion(&right());
    assert_eq!(setup.verify(foreign), Err(PresenceError::UnknownKey), "a key that is not registered");
    let imitated = KeyAssertion { credential: authenticator.id(), ..other.assertion(&right()) };
    assert_eq!(setup.verify(imitated), Err(PresenceError::Signature), "another key with this id");
    assert!(setup.verify(authenticator.assertion(&right())).is_ok(), "control");
}

#[test]
fn a_challenge_expires_and_there_are_not_many() {
    let authenticator = Authenticator::es256();
    let setup = Setup::with_key(&authenticator);
    let now = Instant::now();
    for (age, expected) in [(Duration::from_secs(59), true), (challenges::LIFETIME, false)] {
        for subject in [calls(1, DIGEST, Approval::Once), policy(DIGEST)] {
            let challenges = &setup.verifier.challenges;
            let challenge = challenges.lock().issue(subject.clone(), PORT, now).expect("a challenge");
            let assertion = authenticator.assertion(&Signed::new(&BASE64URL_NOPAD.encode(&challenge)));
            let verified = setup.verifier.verify_key(&subject, &assertion, now + age);
            assert_eq!(verified.is_ok(), expected, "{age:?} {subject:?} {verified:?}");
        }
    }
    let first = setup.challenge(Approval::Once);
    let last = (0..64).map(|_| setup.challenge(Approval::Once)).last().expect("one");
    let verify = |challenge: &str| setup.verify(authenticator.assertion(&Signed::new(challenge)));
    assert_eq!(verify(&first), Err(PresenceError::UnknownChallenge), "the oldest of too many");
    assert!(verify(&last).is_ok(), "control");
}

#[test]
fn a_counter_goes_forward_or_stays_zero() {
    let authenticator = Authenticator::es256();
    let setup = Setup::with_key(&authenticator);
    for (counter, expected) in
        [(0, true), (0, true), (5, true), (5, false), (4, false), (0, false), (6, true)]
    {
        let signed = Signed { counter, ..Signed::new(&setup.challenge(Approval::Once)) };
        let verified = setup.verify(authenticator.assertion(&signed));
        assert_eq!(verified.is_ok(), expected, "{counter} {verified:?}");
    }
    assert_eq!(setup.verifier.list().expect("keys")[0].counter, 6);
}

#[test]
fn each_algorithm_is_verified_as_itself() {
    let pairs = [
        Pair::Es256(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).expect("a key")),
        Pair::EdDsa(Ed25519KeyPair::generate().expect("a key")),
        Pair::Rs256(RsaKeyPair::generate(KeySize::Rsa2048).expect("a key")),
    ];
    for (number, pair) in (1..).zip(pairs) {
        let authenticator = Authenticator { pair, credential: vec![number; 16] };
        let setup = Setup::with_key(&authenticator);
        let assertion = authenticator.assertion(&Signed::new(&setup.challenge(Approval::Once)));
        assert!(setup.verify(assertion).is_ok(), "{number}");
        let (code, _) = setup.verifier.begin_enrolment().expect("a code");
        let other = KeyRegistration {
            algorithm: if number == 1 { -8 } else { -7 },
            ..authenticator.registration(&code)
        };
        assert_eq!(setup.verifier.enrol(&other, |_| Ok(())), Err(PresenceError::Malformed), "{number}");
    }
}

#[test]
fn each_level_accepts_its_own_proofs_and_stronger_ones() {
    let authenticator = Authenticator::es256();
    let password = |uid| Some(PresenceProof::Password { method: PasswordMethod::Polkit, uid });
    let by = |method, uid| Ok(Some(ProvenPresence { uid, ..ProvenPresence::by(method) }));
    let own = geteuid().as_raw();
    for (level, peer, proof, expected) in [
        (Presence::None, own, None, Ok(None)),
        (Presence::None, own + 1, None, Err(PresenceError::OnlyRootApproves)),
        (Presence::None, own + 1, password(1_000), Err(PresenceError::OnlyRootApproves)),
        (Presence::Password, 1_000, None, Err(PresenceError::PasswordRequired)),
        (Presence::Password, 0, None, by("root", None)),
        (Presence::Password, 0, password(1_000), by("polkit", Some(1_000))),
        (Presence::Password, 0, password(0), Err(PresenceError::PasswordOfRoot)),
        (Presence::Password, 1_000, password(1_000), Err(PresenceError::NotRoot)),
        (Presence::Key, 1_000, None, Err(PresenceError::KeyRequired)),
        (Presence::Key, 0, None, Err(PresenceError::KeyRequired)),
        (Presence::Key, 0, password(1_000), Err(PresenceError::KeyRequired)),
    ] {
        let setup = Setup::new(level);
        let subject = calls(1, DIGEST, Approval::Once);
        let verified = setup.verifier.verify(&subject, level, proof.as_ref(), Some(user(peer)));
        assert_eq!(verified, expected, "{level:?} {peer} {proof:?}");
        // A policy is root's, and without a level nobody else's.
        let expected = match (level, peer, &proof) {
            (_, 0, None) => Ok(ProvenPresence::by("root")),
            (Presence::None, ..) => Err(PresenceError::OnlyRoot),
            _ => expected.map(|proven| proven.expect("a proof")),
        };
        let verified = setup.verifier.verify_acceptance(&policy(DIGEST), proof.as_ref(), Some(user(peer)));
        assert_eq!(verified, expected, "{level:?} {peer} {proof:?}: a policy");
    }
    let setup = Setup::new(Presence::Password);
    let subject = calls(1, DIGEST, Approval::Once);
    let unknown = setup.verifier.verify(&subject, Presence::Password, None, None);
    assert_eq!(unknown, Err(PresenceError::PasswordRequired), "unknown");
    setup.enrol(&authenticator).expect("registered");
    let assertion = authenticator.assertion(&Signed::new(&setup.challenge(Approval::Once)));
    assert!(setup.verify(assertion).is_ok(), "a key where a password is enough");
}

#[test]
fn a_code_registers_one_key_and_is_used_up() {
    let (first, second) = (Authenticator::es256(), Authenticator::es256());
    let setup = Setup::new(Presence::Key);
    let enrol = |registration: &KeyRegistration| setup.verifier.enrol(registration, |_| Ok(()));
    let (code, _) = setup.verifier.begin_enrolment().expect("a code");
    let wrong = EnrolmentCode("AAAAAAAAAAAAAAAA".to_owned());
    assert_eq!(enrol(&first.registration(&wrong)), Err(PresenceError::WrongCode));
    assert_eq!(enrol(&first.registration(&code)).expect("registered").aaguid, "07".repeat(16));
    assert_eq!(enrol(&second.registration(&code)), Err(PresenceError::WrongCode), "used");
    assert_eq!(setup.enrol(&first), Err(PresenceError::KnownKey));

    let (code, _) = setup.verifier.begin_enrolment().expect("a code");
    for _ in 0..5 {
        assert_eq!(enrol(&second.registration(&wrong)), Err(PresenceError::WrongCode));
    }
    assert_eq!(enrol(&second.registration(&code)), Err(PresenceError::WrongCode), "after five wrong ones");

    let now = Instant::now();
    for (age, expected) in [(Duration::from_secs(299), true), (enrolment::LIFETIME, false)] {
        let mut enrolment = Enrolment::default();
        let code = enrolment.begin(now).expect("a code");
        assert_eq!(enrolment.take(&code, now + age).is_ok(), expected, "{age:?}");
    }
    assert!(!format!("{code:?}").contains(&code.0), "no log has a code");
}

#[test]
fn a_registration_must_be_that_of_the_code_and_of_a_verified_key() {
    let authenticator = Authenticator::es256();
    let setup = Setup::new(Presence::Key);
    let challenge = |code: &EnrolmentCode| {
        BASE64URL_NOPAD.encode(&Sha256::digest(format!("lockhouse enrolment 1\0{}", code.0)))
    };
    let right =
        |code: &EnrolmentCode| Signed { ceremony: "webauthn.create", ..Signed::new(&challenge(code)) };
    type Change = fn(&mut Signed);
    let changes: [(&str, Change, PresenceError); 6] = [
        ("an assertion", |signed| signed.ceremony = "webauthn.get", PresenceError::OtherCeremony),
        (
            "another challenge",
            |signed| signed.challenge = BASE64URL_NOPAD.encode(&[7; 32]),
            PresenceError::UnknownChallenge,
        ),
        ("another host", |signed| signed.origin = "http://evil.test:80".into(), PresenceError::OtherOrigin),
        ("another name", |signed| signed.relying_party = "evil.test", PresenceError::OtherRelyingParty),
        ("no touch", |signed| signed.flags = 0b100, PresenceError::NotTouched),
        ("no PIN", |signed| signed.flags = 0b001, PresenceError::NotVerified),
    ];
    for (name, change, expected) in changes {
        let (code, _) = setup.verifier.begin_enrolment().expect("a code");
        let mut signed = right(&code);
        change(&mut signed);
        let refused = setup.verifier.enrol(&authenticator.registration_of(&code, &signed), |_| Ok(()));
        assert_eq!(refused, Err(expected), "{name}");
    }
    let (code, _) = setup.verifier.begin_enrolment().expect("a code");
    let unrecorded =
        setup.verifier.enrol(&authenticator.registration(&code), |_| Err(PresenceError::Unrecorded));
    assert_eq!(unrecorded, Err(PresenceError::Unrecorded));
    assert_eq!(setup.verifier.list(), Ok(Vec::new()), "nothing is stored without a record");
    assert!(setup.enrol(&authenticator).is_ok(), "control");
}

#[test]
fn keys_are_private_bounded_and_removed() {
    use std::os::unix::fs::PermissionsExt;
    let setup = Setup::new(Presence::Key);
    let keys: Vec<Authenticator> = (0..16).map(|_| Authenticator::es256()).collect();
    keys.iter().for_each(|key| drop(setup.enrol(key).expect("registered")));
    assert_eq!(setup.enrol(&Authenticator::es256()), Err(PresenceError::TooManyKeys));
    let file = setup.directory.path().join("keys.json");
    assert_eq!(std::fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    assert_eq!(setup.verifier.remove("AAAA", || Ok(())), Err(PresenceError::UnknownKey));
    assert_eq!(setup.verifier.remove(&keys[0].id(), || Ok(())), Ok(()));
    assert_eq!(setup.verifier.list().expect("keys").len(), 15);
    let assertion = keys[0].assertion(&Signed::new(&setup.challenge(Approval::Once)));
    assert_eq!(setup.verify(assertion), Err(PresenceError::UnknownKey), "a removed key");
    std::fs::write(&file, "{}").expect("written");
    let refused = |verifier: &PresenceVerifier| verifier.challenge(policy(DIGEST), PORT).map(drop);
    assert_eq!(refused(&setup.verifier), Err(PresenceError::Storage), "a damaged file");
    assert_eq!(refused(&PresenceVerifier::new(Presence::Key, None)), Err(PresenceError::NoKeys));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_changed_byte_is_accepted(part in 0..3_usize, at in any::<prop::sample::Index>(), change in 1..=255_u8) {
        let authenticator = Authenticator::es256();
        let setup = Setup::with_key(&authenticator);
        let right = authenticator.assertion(&Signed::new(&setup.challenge(Approval::Once)));
        let mut changed = right.clone();
        let text = match part {
            0 => &mut changed.client_data,
            1 => &mut changed.authenticator_data,
            _ => &mut changed.signature,
        };
        let mut bytes = BASE64URL_NOPAD.decode(text.as_bytes()).expect("base64url");
        let at = at.index(bytes.len());
        bytes[at] ^= change;
        *text = BASE64URL_NOPAD.encode(&bytes);
        prop_assert!(setup.verify(changed).is_err());
        // Control: the challenge of a change that was found before it is still valid.
        let again = authenticator.assertion(&Signed::new(&setup.challenge(Approval::Once)));
        prop_assert!(setup.verify(again).is_ok());
    }

    #[test]
    fn any_bytes_are_refused_without_a_panic(
        client in any::<Vec<u8>>(), data in any::<Vec<u8>>(), signature in any::<Vec<u8>>(), text in ".{0,40}",
    ) {
        let authenticator = Authenticator::es256();
        let setup = Setup::with_key(&authenticator);
        let signed = Signed::new(&setup.challenge(Approval::Once)).client_data();
        for client in [client, signed] {
            let assertion = KeyAssertion {
                credential: authenticator.id(),
                client_data: BASE64URL_NOPAD.encode(&client),
                authenticator_data: BASE64URL_NOPAD.encode(&data),
                signature: BASE64URL_NOPAD.encode(&signature),
            };
            prop_assert!(setup.verify(assertion).is_err());
        }
        let (code, _) = setup.verifier.begin_enrolment().expect("a code");
        let registration = KeyRegistration {
            authenticator_data: BASE64URL_NOPAD.encode(&data),
            public_key: text,
            ..authenticator.registration(&code)
        };
        prop_assert!(setup.verifier.enrol(&registration, |_| Ok(())).is_err());
    }
}
