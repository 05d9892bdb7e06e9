//! The state that the hosts of a cluster share: small values under keys, in NATS JetStream. This file alone knows NATS. Another
//! engine of this state would have the same functions.

use std::convert::Infallible;
use std::time::{Duration, SystemTime};

use async_nats::jetstream::kv::{CreateErrorKind, Entry, Operation, Store, UpdateErrorKind, Watch};
use async_nats::jetstream::stream::{self, DiscardPolicy, StorageType};
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectOptions, Event};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use tokio::time::{sleep, timeout};

use crate::server_addresses::StateAddress;
use crate::settings::{HostName, StateConnection};
use crate::state_table::Table;

/// Maximum time of one operation. What needs it fails after this time, with the reason.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum time for the first connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The client notices a server that hangs after a few of these intervals. Its own default is a minute.
const PING_INTERVAL: Duration = Duration::from_secs(2);
/// Pause before a table is followed again after the connection failed.
const FOLLOW_RETRY_DELAY: Duration = Duration::from_millis(500);
/// The oldest version of the servers.
const VERSION_MIN: (u64, u64) = (2, 12);
/// How long NATS remembers the ids of messages, which are not used here. It must not be longer than values live.
const DUPLICATE_WINDOW: Duration = Duration::from_mins(2);
/// Maximum size of a table, in bytes.
/// Bound: hosts of a cluster.
const TABLE_BYTES_MAX: i64 = 256 * 1024 * 1024;
/// The size of an archive is limited by the storage of the NATS servers.
const UNLIMITED: i64 = -1;

/// Why the shared state could not be read or changed, as a clause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the state that the hosts of the cluster share is not available: {0}")]
pub struct Unavailable(String);

impl Unavailable {
    fn new(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }

    /// Several hosts write the same value now.
    pub(crate) fn changing() -> Self {
        Self("another host has changed it at the same time; try again".to_owned())
    }

    /// The clock of this host is wrong, so that it cannot use times of the others.
    pub(crate) fn wrong_clock() -> Self {
        Self("the clock of this host is wrong".to_owned())
    }

    /// This host cannot store what another one has changed.
    pub(crate) fn not_copied() -> Self {
        Self("this host cannot store the newest content; its log says why".to_owned())
    }

    /// The crypto library cannot sign what this host would write.
    pub(crate) fn unsigned() -> Self {
        Self("this host cannot sign its lease".to_owned())
    }

    fn timed_out() -> Self {
        Self(format!("NATS did not answer within {} s", OPERATION_TIMEOUT.as_secs()))
    }
}

/// A stored value.
#[derive(Clone, Debug)]
pub(crate) struct StoredValue {
    pub(crate) value: Bytes,
    /// The number of the write, by which the next writer shows that it has seen this value.
    pub(crate) revision: u64,
    /// When the value was written, by the clock of the NATS server.
    pub(crate) written: SystemTime,
}

impl StoredValue {
    /// Returns the value of an entry. `None` if the entry says that the value was deleted.
    fn of(entry: Entry) -> Option<Self> {
        let Entry { value, revision, created, operation, .. } = entry;
        (operation == Operation::Put).then(|| Self { value, revision, written: created.into() })
    }
}

/// A change of a table.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) key: String,
    /// `None` if the value was deleted.
    pub(crate) value: Option<StoredValue>,
}

/// The shared state.
#[derive(Clone, Debug)]
pub(crate) struct SharedState {
    /// The buckets of the tables, in their order.
    stores: [Store; Table::ALL.len()],
}

impl SharedState {
    /// Connects to the servers, and creates the tables that are not there, with this number of copies of each value.
    pub(crate) async fn connect(connection: &StateConnection, replicas: usize) -> Result<Self, Unavailable> {
        Self::connect_with(connection, Some(replicas)).await
    }

    /// Connects to the servers to read the tables, which must be there.
    pub(crate) async fn connect_to_read(connection: &StateConnection) -> Result<Self, Unavailable> {
        Self::connect_with(connection, None).await
    }

    async fn connect_with(
        connection: &StateConnection,
        replicas: Option<usize>,
    ) -> Result<Self, Unavailable> {
        let connecting = async {
            let client = connect(connection).await?;
            check_version(&client)?;
            let context = jetstream::new(client);
            let open = |table| open(&context, table, replicas);
            let stores: Vec<Store> = futures_util::future::try_join_all(Table::ALL.map(open)).await?;
            // There is one for each table.
            let stores = stores.try_into().map_err(|_| Unavailable("a bucket is missing".to_owned()))?;
            Ok(Self { stores })
        };
        let connected = timeout(CONNECT_TIMEOUT, connecting).await;
        let silent = || Unavailable(format!("NATS did not answer within {} s", CONNECT_TIMEOUT.as_secs()));
        connected.unwrap_or_else(|_| Err(silent()))
    }

    /// Writes a value that is not there yet. Returns its revision, or `None` if there is one.
    pub(crate) async fn create(
        &self,
        table: Table,
        key: &str,
        value: Bytes,
    ) -> Result<Option<u64>, Unavailable> {
        match in_time(self.store(table).create(key, value)).await? {
            Ok(revision) => Ok(Some(revision)),
            Err(error) if error.kind() == CreateErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(Unavailable::new(error)),
        }
    }

    /// Replaces the value with this revision. Returns the new revision, or `None` if the value was replaced or deleted
    /// meanwhile.
    pub(crate) async fn update(
        &self,
        table: Table,
        key: &str,
        value: Bytes,
        revision: u64,
    ) -> Result<Option<u64>, Unavailable> {
        match in_time(self.store(table).update(key, value, revision)).await? {
            Ok(revision) => Ok(Some(revision)),
            Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Ok(None),
            Err(error) => Err(Unavailable::new(error)),
        }
    }

    /// Reads a value from the leader, not from a copy that may be older.
    pub(crate) async fn get(&self, table: Table, key: &str) -> Result<Option<StoredValue>, Unavailable> {
        let entry = in_time(self.store(table).entry(key)).await?.map_err(Unavailable::new)?;
        Ok(entry.and_then(StoredValue::of))
    }

    /// Deletes a value, if it has this revision.
    pub(crate) async fn delete(&self, table: Table, key: &str, revision: u64) -> Result<(), Unavailable> {
        let deleting = self.store(table).delete_expect_revision(key, Some(revision));
        in_time(deleting).await?.map_err(Unavailable::new)
    }

    /// Returns the keys that begin with a text.
    pub(crate) async fn keys(&self, table: Table, prefix: &str) -> Result<Vec<String>, Unavailable> {
        let subjects = format!("$KV.{}.", table.bucket());
        let listed = timeout(CONNECT_TIMEOUT, async {
            let listed = self.store(table).stream.info_with_subjects(format!("{subjects}{prefix}>")).await;
            listed.map_err(Unavailable::new)?.try_collect::<Vec<_>>().await.map_err(Unavailable::new)
        });
        let listed = listed.await.map_err(|_| Unavailable::timed_out())??;
        Ok(listed
            .iter()
            .filter_map(|(subject, _)| Some(subject.strip_prefix(&subjects)?.to_owned()))
            .collect())
    }

    /// Calls `what` for each value of a table that is there now, in the order in which they were written.
    pub(crate) async fn for_each<E: From<Unavailable>>(
        &self,
        table: Table,
        mut what: impl FnMut(&str, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let count = in_time(self.store(table).status()).await?.map_err(Unavailable::new)?.values();
        if count == 0 {
            return Ok(());
        }
        let mut changes = self.watch(table).await?;
        while let Some(entry) =
            timeout(CONNECT_TIMEOUT, changes.next()).await.map_err(|_| Unavailable::timed_out())?
        {
            let entry = entry.map_err(Unavailable::new)?;
            if entry.operation == Operation::Put {
                what(&entry.key, &entry.value)?;
            }
            // The number of values that follow.
            if entry.delta == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Calls `hear` for each value of a table, and then for its changes. Begins again after the connection failed. Runs until it is
    /// dropped.
    pub(crate) async fn follow(&self, table: Table, mut hear: impl AsyncFnMut(Change)) -> Infallible {
        loop {
            match self.watch(table).await {
                Ok(mut changes) => {
                    while let Some(Ok(entry)) = changes.next().await {
                        hear(Change { key: entry.key.clone(), value: StoredValue::of(entry) }).await;
                    }
                }
                Err(error) => tracing::debug!("{} cannot be followed: {error}", table.bucket()),
            }
            sleep(FOLLOW_RETRY_DELAY).await;
        }
    }

    async fn watch(&self, table: Table) -> Result<Watch, Unavailable> {
        let watch = timeout(CONNECT_TIMEOUT, self.store(table).watch_with_history(">")).await;
        watch.map_err(|_| Unavailable::timed_out())?.map_err(Unavailable::new)
    }

    fn store(&self, table: Table) -> &Store {
        &self.stores[table as usize]
    }
}

/// Waits for one operation.
async fn in_time<T>(operation: impl Future<Output = T>) -> Result<T, Unavailable> {
    timeout(OPERATION_TIMEOUT, operation).await.map_err(|_| Unavailable::timed_out())
}

async fn connect(settings: &StateConnection) -> Result<Client, Unavailable> {
    let name = settings.name.as_str();
    let mut options = ConnectOptions::new()
        .name(format!("lockhouse {name}"))
        .custom_inbox_prefix(inbox_prefix(&settings.name))
        .ping_interval(PING_INTERVAL)
        .connection_timeout(PING_INTERVAL)
        .request_timeout(Some(OPERATION_TIMEOUT))
        .require_tls(settings.servers.iter().all(StateAddress::uses_tls))
        .ignore_discovered_servers()
        .event_callback(|event| async move {
            match event {
                // A refused write is a timeout for its caller. The reason comes here.
                Event::ServerError(error) => tracing::warn!("NATS: {error}"),
                event => tracing::info!("NATS: {event}"),
            }
        });
    if let Some(authorities) = &settings.authorities {
        options = options.add_root_certificates(authorities.clone());
    }
    if let Some(seed) = &settings.nkey {
        options = options.nkey(seed.clone());
    }
    let addresses: Vec<&str> = settings.servers.iter().map(StateAddress::as_str).collect();
    let all = addresses.join(", ");
    let connected = options.connect(addresses).await;
    connected.map_err(|error| Unavailable(format!("no NATS server can be reached at {all}: {error}")))
}

/// Returns the beginning of the subjects at which a host gets answers. No other host can subscribe to them.
pub(crate) fn inbox_prefix(host: &HostName) -> String {
    format!("_INBOX_{host}")
}

fn check_version(client: &Client) -> Result<(), Unavailable> {
    let version = client.server_info().version;
    let mut numbers = version.split('.').map_while(|number| number.parse().ok());
    let found: (u64, u64) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found >= VERSION_MIN {
        return Ok(());
    }
    let (major, minor) = VERSION_MIN;
    Err(Unavailable(format!("the NATS server has version {version}, and {major}.{minor} or later is needed")))
}

/// Opens the bucket of a table, or creates it.
async fn open(context: &Context, table: Table, replicas: Option<usize>) -> Result<Store, Unavailable> {
    let bucket = table.bucket();
    if let Some(replicas) = replicas {
        create(context, table, replicas).await?;
    }
    context.get_key_value(bucket).await.map_err(Unavailable::new)
}

async fn create(context: &Context, table: Table, replicas: usize) -> Result<(), Unavailable> {
    let (bucket, max_age) = (table.bucket(), table.lifetime());
    let config = stream::Config {
        name: format!("KV_{bucket}"),
        subjects: vec![format!("$KV.{bucket}.>")],
        max_messages_per_subject: 1,
        max_message_size: table.value_bytes_max(),
        max_bytes: if table.is_archive() { UNLIMITED } else { TABLE_BYTES_MAX },
        max_age,
        duplicate_window: if max_age.is_zero() { DUPLICATE_WINDOW } else { max_age.min(DUPLICATE_WINDOW) },
        discard: DiscardPolicy::New,
        storage: StorageType::File,
        num_replicas: replicas,
        // Of an archive, nothing is replaced.
        discard_new_per_subject: table.is_archive(),
        // Otherwise, one message with the header of a rollup would replace the whole table.
        allow_rollup: false,
        deny_purge: true,
        deny_delete: true,
        // A copy may be older than what this host has just written.
        allow_direct: false,
        ..stream::Config::default()
    };
    let stream = context.get_or_create_stream(config).await.map_err(Unavailable::new)?;
    if stream.cached_info().config.allow_rollup {
        tracing::warn!(
            "NATS permits each host to replace the whole stream KV_{bucket}, which an earlier version has made: delete the stream while no \
             host runs"
        );
    }
    Ok(())
}
