//! The grants of one front: which accesses the engine granted on its connection, and to whom. The front names a grant by
//! its id, and the engine takes the identity of the AI client from this table.

mod grant_table;

use std::sync::{Arc, Weak};

use lockhouse_access::{Authenticator, DpopProof, Evidence};
use lockhouse_approvals::Approver;
use lockhouse_audit::LocalUser;
use lockhouse_base::own_host;
use lockhouse_base::principal::Principal;
use lockhouse_cluster::HostName;
use lockhouse_link::FrontEndpoint;
use lockhouse_messages::{
    Access, AccessRefusal, ConnectionId, Credential, GrantId, Presence, Role, Roles, ToFront,
};
use lockhouse_policies::{Policy, RoleKind};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::front_budget::FrontBudget;
use crate::unix_connections::UnixConnections;
use grant_table::{CredentialKey, GrantTable, Issued};

/// For whom a front makes requests, and which credentials it may pass on.
#[derive(Clone, Debug)]
pub(crate) enum FrontKind {
    /// It serves one AI client over standard input and output. Every request is a request of this client.
    Client(Principal),
    /// It serves AI clients over HTTP, and passes their credentials on.
    Http(HttpFront),
    /// It is another host of the cluster, of this name, which passes requests of AI clients on with their credentials.
    Host(HostName),
    /// It is an operator's command, whose peer the engine has checked itself.
    Operator(OperatorPeer),
}

/// What the engine knows of a front for HTTP.
#[derive(Clone, Debug)]
pub(crate) struct HttpFront {
    /// Its connections of Unix domain sockets, of which this process has asked the kernel.
    pub(crate) connections: Arc<UnixConnections>,
    pub(crate) budget: FrontBudget,
}

/// The process of an operator's command, and what it may do.
#[derive(Clone, Debug)]
pub(crate) struct OperatorPeer {
    /// `None` if the kernel does not report the user.
    user: Option<LocalUser>,
    rights: OperatorRights,
}

/// What decides about the rights of an operator.
#[derive(Clone, Debug)]
enum OperatorRights {
    /// The account of the process.
    Fixed(Roles),
    /// The roles that the policy gives this person now.
    Policy(Principal),
}

impl OperatorPeer {
    /// Returns a process of root or of the engine's own account. It may do everything but act as an AI client.
    pub(crate) fn owner(user: Option<LocalUser>) -> Self {
        let roles = Roles::only(Role::Operate).with(Role::Approve).with(Role::Policy).with(Role::Audit);
        Self { user, rights: OperatorRights::Fixed(roles) }
    }

    /// Returns a process of another account, whose roles in the policy decide.
    pub(crate) fn with_roles(user: LocalUser, principal: Principal) -> Self {
        Self { user: Some(user), rights: OperatorRights::Policy(principal) }
    }

    /// Returns a process of the person whom the engine of the system serves. The AI agent of that person can do the same, so
    /// it may neither approve calls nor change the policy. If an approval can require a proof of presence, it may see the
    /// questions and decline them, and pass a proof on, also one for a change of the policy.
    pub(crate) fn person(user: LocalUser, presence: Presence) -> Self {
        let roles = Roles::only(Role::Operate).with(Role::Audit);
        let roles = if presence.is_none() { roles } else { roles.with(Role::Approve).with(Role::Policy) };
        Self { user: Some(user), rights: OperatorRights::Fixed(roles) }
    }

    pub(super) fn user(&self) -> Option<LocalUser> {
        self.user
    }

    /// Returns who answers questions.
    pub(super) fn approver(&self) -> Approver {
        match &self.rights {
            OperatorRights::Fixed(_) => Approver::Owner(self.user),
            OperatorRights::Policy(principal) => {
                Approver::Person { principal: principal.clone(), user: self.user }
            }
        }
    }
}

/// What a valid credential gets.
#[derive(Debug)]
pub(super) struct AccessGrant {
    pub(super) access: Access,
    /// Whether the front had no valid grant for this credential yet.
    pub(super) is_new: bool,
}

/// The grants of one front.
#[derive(Debug)]
pub(super) struct Grants {
    kind: FrontKind,
    front: Weak<dyn FrontEndpoint>,
    table: Mutex<GrantTable>,
}

impl Grants {
    pub(super) fn new(kind: FrontKind, front: Weak<dyn FrontEndpoint>) -> Arc<Self> {
        Arc::new(Self { kind, front, table: Mutex::default() })
    }

    /// Whether the front is an operator's command.
    pub(super) fn is_operator(&self) -> bool {
        matches!(self.kind, FrontKind::Operator(_))
    }

    /// Returns who operates the engine. `None` if the front is no operator's command.
    pub(super) fn operator(&self) -> Option<&OperatorPeer> {
        match &self.kind {
            FrontKind::Operator(operator) => Some(operator),
            FrontKind::Client(_) | FrontKind::Http(_) | FrontKind::Host(_) => None,
        }
    }

    /// Returns the maximum number of open exchanges of the front, if it is in another process. Further ones are refused.
    pub(super) fn exchanges_max(&self) -> usize {
        match self.kind {
            FrontKind::Client(_) | FrontKind::Operator(_) => 1_024,
            // It serves many AI clients.
            FrontKind::Http(_) | FrontKind::Host(_) => 16 * 1_024,
        }
    }

    /// Returns the one AI client that the front serves. `None` if the front serves many, over HTTP, or none.
    pub(super) fn only_client(&self) -> Option<&Principal> {
        match &self.kind {
            FrontKind::Client(client) => Some(client),
            FrontKind::Http(_) | FrontKind::Host(_) | FrontKind::Operator(_) => None,
        }
    }

    /// Forgets a connection that the front has closed. A front that names another one loses only its own.
    pub(super) fn close_connection(&self, id: ConnectionId) {
        if let FrontKind::Http(http) = &self.kind {
            http.connections.remove(id);
        }
    }

    /// Counts a request of the front.
    pub(super) fn count_request(&self) {
        if let FrontKind::Http(http) = &self.kind {
            http.budget.count();
        }
    }

    /// Whether the front serves AI clients over HTTP.
    pub(super) fn is_http(&self) -> bool {
        matches!(self.kind, FrontKind::Http(_))
    }

    /// Whether the front is another host of the cluster.
    pub(super) fn is_host(&self) -> bool {
        self.host().is_some()
    }

    /// Returns the name of the front as a host of the cluster. `None` if it is none.
    pub(super) fn host(&self) -> Option<&HostName> {
        match &self.kind {
            FrontKind::Host(name) => Some(name),
            FrontKind::Client(_) | FrontKind::Http(_) | FrontKind::Operator(_) => None,
        }
    }

    /// Returns the credential with which the client of a grant was authenticated last, to pass it on to another host. `None` if
    /// no host but this one can verify it.
    pub(super) fn credential(&self, grant: GrantId) -> Option<Arc<Credential>> {
        self.table.lock().credential(grant)
    }

    /// Verifies a credential that the front passes on. The same token, and all connections of the same user, get the same
    /// grant as long as that is valid.
    ///
    /// # Errors
    /// Why the credential is refused.
    pub(super) async fn authenticate(
        self: &Arc<Self>,
        authenticator: Option<&Authenticator>,
        credential: &Credential,
        policy: &Policy,
    ) -> Result<AccessGrant, AccessRefusal> {
        let evidence = match (credential, &self.kind) {
            (Credential::Connection, _) => {
                let (principal, roles) = self.connection(policy);
                let access = access(GrantId::CONNECTION, &principal, roles);
                return Ok(AccessGrant { access, is_new: false });
            }
            (_, FrontKind::Client(_) | FrontKind::Operator(_)) => {
                return Err(AccessRefusal::CredentialNotAccepted);
            }
            (Credential::Bearer(token), _) => Evidence::Token(token),
            (Credential::BoundToken { token, proof, method }, _) => {
                Evidence::BoundToken(token, DpopProof { proof, method })
            }
            (Credential::CertificateToken { token, certificate }, _) => {
                Evidence::CertificateToken(token, certificate)
            }
            (Credential::Certificate(certificate), _) => Evidence::Certificate(certificate),
            (Credential::UnixConnection(id), FrontKind::Http(HttpFront { connections, .. })) => {
                Evidence::User(connections.peer(*id).ok_or(AccessRefusal::UnknownConnection)?)
            }
            (Credential::None, FrontKind::Http(_)) => Evidence::Nothing,
            (Credential::UnixConnection(_) | Credential::None, FrontKind::Host(_)) => {
                return Err(AccessRefusal::CredentialNotAccepted);
            }
        };
        let authenticator = authenticator.ok_or(AccessRefusal::CredentialNotAccepted)?;
        let verified = authenticator.authenticate(evidence).await.and_then(|principal| {
            let roles = roles_of_client(&principal, policy);
            let may_run = roles.has(Role::Run).then_some((principal, roles));
            may_run.ok_or(AccessRefusal::MissingRole(Role::Run))
        });
        let (principal, roles) =
            verified.inspect_err(|_| self.table.lock().suspend(&CredentialKey::of(evidence)))?;
        let (grant, is_new) = self.issue(evidence, &principal);
        let is_for_hosts = !matches!(evidence, Evidence::User(_) | Evidence::Nothing);
        if is_for_hosts && own_host::tag().is_some() && self.is_http() {
            self.table.lock().set_credential(grant, credential);
        }
        Ok(AccessGrant { access: access(grant, &principal, roles), is_new })
    }

    /// Returns the AI client that holds a grant, if the grant permits requests that require this role now, under the newest
    /// policy.
    ///
    /// # Errors
    /// [`AccessRefusal::EndedGrant`] or [`AccessRefusal::MissingRole`].
    pub(super) fn principal(
        &self,
        grant: Option<GrantId>,
        role: Role,
        policy: &Policy,
    ) -> Result<Principal, AccessRefusal> {
        let (principal, roles) = match grant {
            Some(GrantId::CONNECTION) => self.connection(policy),
            Some(grant) => {
                let found = self.table.lock().find(grant).ok_or(AccessRefusal::EndedGrant)?;
                let roles = roles_of_client(&found, policy);
                (found, roles)
            }
            None => return Err(AccessRefusal::EndedGrant),
        };
        match roles.has(role) {
            true => Ok(principal),
            false => Err(AccessRefusal::MissingRole(role)),
        }
    }

    /// The access of the connection itself: the one AI client, the needs of a front for HTTP, or the operator.
    fn connection(&self, policy: &Policy) -> (Principal, Roles) {
        match &self.kind {
            FrontKind::Client(principal) => (principal.clone(), Roles::only(Role::Run)),
            FrontKind::Http(_) | FrontKind::Host(_) => (Principal::local(), Roles::only(Role::Operate)),
            FrontKind::Operator(OperatorPeer { rights: OperatorRights::Fixed(roles), .. }) => {
                (Principal::local(), *roles)
            }
            FrontKind::Operator(OperatorPeer { rights: OperatorRights::Policy(principal), .. }) => {
                (principal.clone(), roles_of_operator(principal, policy))
            }
        }
    }

    /// Returns the grant of a verified credential, and whether it is a new one.
    fn issue(self: &Arc<Self>, evidence: Evidence<'_>, principal: &Principal) -> (GrantId, bool) {
        let stop = CancellationToken::new();
        let Issued { grant, is_new, ended } =
            self.table.lock().issue(CredentialKey::of(evidence), principal, &stop);
        for grant in ended {
            self.report_end(grant);
        }
        if is_new && principal.is_revocable() {
            let (grants, principal) = (Arc::downgrade(self), principal.clone());
            tokio::spawn(stop.run_until_cancelled_owned(async move {
                principal.revoked().await;
                if let Some(grants) = grants.upgrade() {
                    grants.report_end(grant);
                    grants.table.lock().remove(grant);
                }
            }));
        }
        (grant, is_new)
    }

    fn report_end(&self, grant: GrantId) {
        if let Some(front) = self.front.upgrade() {
            front.notify(ToFront::AccessEnded { grant });
        }
    }
}

/// Returns the roles of an AI client over HTTP: to run programs, if the policy has no roles or gives it this one.
fn roles_of_client(principal: &Principal, policy: &Policy) -> Roles {
    let may_run = !policy.has_roles()
        || principal.authenticated_client().is_some_and(|person| policy.has_role(person, RoleKind::Run));
    if may_run { Roles::only(Role::Run) } else { Roles::default() }
}

/// Returns the roles that the policy gives a person who operates the engine. There are none if the policy has no roles.
fn roles_of_operator(principal: &Principal, policy: &Policy) -> Roles {
    let Some(person) = principal.authenticated_client().filter(|_| policy.has_roles()) else {
        return Roles::default();
    };
    let kinds = [
        (RoleKind::Approve, Role::Approve),
        (RoleKind::Policy, Role::Policy),
        (RoleKind::Audit, Role::Audit),
        (RoleKind::Operate, Role::Operate),
    ];
    let given = kinds.into_iter().filter(|(kind, _)| policy.has_role(person, *kind));
    given.fold(Roles::default(), |roles, (_, role)| roles.with(role))
}

fn access(grant: GrantId, principal: &Principal, roles: Roles) -> Access {
    Access {
        grant,
        owner: principal.owner(),
        name: principal.name().map(str::to_owned),
        client: principal.authenticated_client().map(|name| name.as_str().to_owned()),
        only: principal.only().map(<[String]>::to_vec),
        roles,
        expires_in: principal.expires_in(),
    }
}

#[cfg(test)]
mod tests;
