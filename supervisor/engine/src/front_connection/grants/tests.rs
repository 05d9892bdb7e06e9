//! Tests of the grants of fronts: what a front can get with credentials and ids of grants, and what it cannot.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_access::{
    AllowedUsers, AuthMethod, AuthMode, AuthSettings, ConfiguredUser, TokenFile, UnixPeer,
};
use lockhouse_link::Waiting;
use lockhouse_messages::Owner;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::*;

/// A front that passes the ids of ended grants on.
struct Front(mpsc::UnboundedSender<GrantId>);

impl FrontEndpoint for Front {
    fn receive(&self, message: ToFront) -> Option<Waiting> {
        if let ToFront::AccessEnded { grant } = message {
            let _ = self.0.send(grant);
        }
        None
    }
}

struct Setup {
    _directory: tempfile::TempDir,
    file: TokenFile,
    authenticator: Arc<Authenticator>,
    front: Arc<dyn FrontEndpoint>,
    ended: mpsc::UnboundedReceiver<GrantId>,
}

impl Setup {
    fn new() -> Self {
        Self::for_user(nix::unistd::geteuid().as_raw())
    }

    /// Only this user of the host is accepted.
    fn for_user(uid: u32) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let file = TokenFile::at(directory.path().join("tokens.json"));
        let authenticator = Authenticator::new(AuthSettings {
            certificates: None,
            mode: AuthMode::Methods(vec![AuthMethod::Token, AuthMethod::Peer]),
            tokens: Some(file.clone()),
            oauth: None,
            users: AllowedUsers::resolve(Some(&[ConfiguredUser::Id(uid)])).expect("users"),
        })
        .expect("an authenticator");
        let (sender, ended) = mpsc::unbounded_channel();
        Self { _directory: directory, file, authenticator, front: Arc::new(Front(sender)), ended }
    }

    fn link(&self, kind: FrontKind) -> Arc<Grants> {
        Grants::new(kind, Arc::downgrade(&self.front))
    }

    fn token(&self, name: &str) -> Credential {
        let created = self.file.create(&name.parse().expect("a name"), None, None, || Ok(()));
        let token = created.map_err(|error: lockhouse_access::TokenFileError| error);
        Credential::Bearer(token.expect("a token").reveal().to_owned())
    }

    async fn access(&self, link: &Arc<Grants>, credential: &Credential) -> Result<Access, AccessRefusal> {
        link.authenticate(Some(&self.authenticator), credential, &Policy::empty())
            .await
            .map(|granted| granted.access)
    }
}

fn http() -> FrontKind {
    FrontKind::Http(HttpFront { connections: Arc::default(), budget: FrontBudget::new(u64::MAX) })
}

/// Registers a connection of this process with itself. Returns its credential.
fn connect(link: &Arc<Grants>) -> (ConnectionId, Credential) {
    let (one, _other) = UnixStream::pair().expect("a pair");
    let FrontKind::Http(http) = &link.kind else { panic!("a front without connections") };
    let id = http.connections.add(UnixPeer::of(&one).expect("a user"));
    (id, Credential::UnixConnection(id))
}

#[tokio::test]
async fn a_grant_counts_on_its_own_link_alone_and_an_invented_one_nowhere() {
    let setup = Setup::new();
    let (link, other) = (setup.link(http()), setup.link(http()));
    let access = setup.access(&link, &setup.token("desk")).await.expect("granted");
    let holder =
        link.principal(Some(access.grant), Role::Run, &Policy::empty()).expect("control: on its link");
    assert_eq!((holder.name(), holder.owner()), (Some("token:desk"), access.owner));
    for (grant, case) in [
        (Some(access.grant), "the grant of another link"),
        (Some(GrantId::new_random()), "an invented grant"),
        (None, "no grant"),
    ] {
        let refusal = other.principal(grant, Role::Run, &Policy::empty()).expect_err(case);
        assert_eq!(refusal, AccessRefusal::EndedGrant, "{case}");
    }
}

#[tokio::test]
async fn a_credential_has_one_grant_until_its_token_is_revoked() {
    let mut setup = Setup::new();
    let link = setup.link(http());
    let (desk, lamp) = (setup.token("desk"), setup.token("lamp"));
    let access = setup.access(&link, &desk).await.expect("granted");
    let other = setup.access(&link, &lamp).await.expect("granted");
    assert_eq!(setup.access(&link, &desk).await.expect("granted"), access);
    assert_ne!(other.grant, access.grant);
    assert!(setup.file.revoke(&"desk".parse().expect("a name")).expect("written"));
    assert_eq!(setup.access(&link, &desk).await, Err(AccessRefusal::RevokedToken));
    let ended = timeout(Duration::from_secs(10), setup.ended.recv()).await.expect("in time");
    assert_eq!(ended, Some(access.grant), "the front learns of the end");
    assert_eq!(
        link.principal(Some(access.grant), Role::Run, &Policy::empty()).expect_err("revoked"),
        AccessRefusal::EndedGrant
    );
    assert!(
        link.principal(Some(other.grant), Role::Run, &Policy::empty()).is_ok(),
        "control: another client"
    );
    assert!(setup.ended.try_recv().is_err());
}

#[tokio::test]
async fn a_grant_is_suspended_from_the_refusal_of_its_credential_until_it_is_accepted_again() {
    let mut setup = Setup::new();
    let link = setup.link(http());
    let (desk, lamp) = (setup.token("desk"), setup.token("lamp"));
    let access = setup.access(&link, &desk).await.expect("granted");
    let other = setup.access(&link, &lamp).await.expect("granted");
    let permissions = std::fs::metadata(setup.file.path()).expect("a file").permissions();
    std::fs::set_permissions(setup.file.path(), PermissionsExt::from_mode(0o666)).expect("changed");
    assert_eq!(setup.access(&link, &desk).await, Err(AccessRefusal::TokensUnreadable));
    let suspended = link.principal(Some(access.grant), Role::Run, &Policy::empty()).expect_err("suspended");
    assert_eq!(suspended, AccessRefusal::EndedGrant);
    assert!(
        link.principal(Some(other.grant), Role::Run, &Policy::empty()).is_ok(),
        "control: its credential was not refused"
    );
    std::fs::set_permissions(setup.file.path(), permissions).expect("changed");
    assert_eq!(setup.access(&link, &desk).await.expect("accepted again"), access, "the same grant");
    assert!(link.principal(Some(access.grant), Role::Run, &Policy::empty()).is_ok());
    assert!(setup.ended.try_recv().is_err(), "its event streams do not end");
}

#[tokio::test]
async fn a_user_is_authenticated_by_an_open_connection_of_the_front_alone() {
    let setup = Setup::new();
    let (link, other) = (setup.link(http()), setup.link(http()));
    let ((id, user), (_, again)) = (connect(&link), connect(&link));
    let access = setup.access(&link, &user).await.expect("control: an open connection");
    assert!(access.name.as_deref().is_some_and(|name| name.starts_with("user:")), "{access:?}");
    assert_eq!(
        setup.access(&link, &again).await.expect("another connection"),
        access,
        "one grant for a user"
    );
    let unknown = Err(AccessRefusal::UnknownConnection);
    for number in [0, 3, u64::MAX] {
        let invented = Credential::UnixConnection(ConnectionId(number));
        assert_eq!(setup.access(&link, &invented).await, unknown, "{number}");
        link.close_connection(ConnectionId(number));
    }
    assert_eq!(setup.access(&other, &user).await, unknown, "a connection of another front");
    assert!(setup.access(&link, &user).await.is_ok(), "control: it is still open");
    link.close_connection(id);
    assert_eq!(setup.access(&link, &user).await, unknown, "closed");
    assert!(setup.access(&link, &again).await.is_ok(), "control: the other one is open");
    let (next, _) = connect(&link);
    assert_ne!(next, id, "numbers are not used again");

    let stdio = setup.link(FrontKind::Client(Principal::for_new_connection()));
    let refused = Err(AccessRefusal::CredentialNotAccepted);
    for credential in [user, setup.token("desk"), Credential::None] {
        assert_eq!(setup.access(&stdio, &credential).await, refused, "{credential:?}");
    }
}

#[tokio::test]
async fn a_user_who_is_not_listed_is_refused() {
    let uid = nix::unistd::geteuid().as_raw();
    for (listed, is_accepted) in [(uid, true), (uid + 1, false)] {
        let setup = Setup::for_user(listed);
        let link = setup.link(http());
        let access = setup.access(&link, &connect(&link).1).await;
        assert_eq!(access.is_ok(), is_accepted, "{access:?}");
    }
}

#[tokio::test]
async fn a_grant_permits_the_requests_of_its_role_alone() {
    let setup = Setup::new();
    let client = Principal::for_new_connection();
    let (stdio, http) = (setup.link(FrontKind::Client(client.clone())), setup.link(http()));
    let operator = setup.link(FrontKind::Operator(OperatorPeer::owner(None)));
    let desk = setup.access(&http, &setup.token("desk")).await.expect("granted").grant;
    let own = setup.access(&http, &Credential::Connection).await.expect("granted");
    assert_eq!((own.grant, own.owner), (GrantId::CONNECTION, Owner::LOCAL));
    let connection = setup.access(&stdio, &Credential::Connection).await.expect("granted");
    assert_eq!((connection.grant, connection.owner), (GrantId::CONNECTION, client.owner()));
    let access = setup.access(&operator, &Credential::Connection).await.expect("granted");
    assert_eq!((access.grant, access.owner), (GrantId::CONNECTION, Owner::LOCAL));
    let token = setup.access(&operator, &setup.token("lamp")).await;
    assert_eq!(token, Err(AccessRefusal::CredentialNotAccepted), "an operator passes no token on");
    let of_operator = vec![Role::Approve, Role::Policy, Role::Audit, Role::Operate];
    for (case, link, grant, permitted) in [
        ("a client over standard input", &stdio, GrantId::CONNECTION, vec![Role::Run]),
        ("a client over HTTP", &http, desk, vec![Role::Run]),
        ("the front for HTTP itself", &http, GrantId::CONNECTION, vec![Role::Operate]),
        ("an operator", &operator, GrantId::CONNECTION, of_operator),
    ] {
        for role in [Role::Run, Role::Approve, Role::Policy, Role::Audit, Role::Operate] {
            let expected =
                if permitted.contains(&role) { Ok(()) } else { Err(AccessRefusal::MissingRole(role)) };
            assert_eq!(
                link.principal(Some(grant), role, &Policy::empty()).map(|_| ()),
                expected,
                "{case}: {role:?}"
            );
        }
    }
}
