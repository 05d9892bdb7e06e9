//! What a connection to one upstream server is opened with.

use std::sync::Arc;

use lockhouse_cluster::ServerPlaces;
use lockhouse_protocol::ServerName;
use tokio::sync::Semaphore;

use super::auth::{LoginSource, SubjectTokens};
use super::change_notices::ChangeNotices;
use super::definition::ServerDefinition;
use super::launcher::Launchers;
use super::server_events::ServerEvents;
use super::storage_paths::StoragePaths;

/// What a connection to one server is opened with, and each further connection to it.
#[derive(Clone, Debug)]
pub(super) struct ConnectionSetup {
    pub(super) name: ServerName,
    pub(super) definition: ServerDefinition,
    pub(super) paths: StoragePaths,
    /// Limits how many servers start at a time.
    pub(super) starts: Arc<Semaphore>,
    pub(super) notices: ChangeNotices,
    pub(super) events: ServerEvents,
    pub(super) launchers: Launchers,
    pub(super) places: ServerPlaces,
    pub(super) login: LoginSource,
    /// The tokens with which users authenticate to the service.
    pub(super) subjects: SubjectTokens,
}
