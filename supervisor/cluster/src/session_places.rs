//! On which host the sessions of AI clients are. The first host that gets a run for a session has it from then on.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use lockhouse_base::keyed_limiter::KeyedLimiter;
use lockhouse_messages::{HostTag, Owner};
use lockhouse_policies::Rate;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::shared_state::{SharedState, Unavailable};
use crate::state_table::Table;
use crate::stored_forms::digest_key;

/// A place that was written longer ago is written again with the next run, so that a session that is in use keeps it.
const REWRITE_AFTER: Duration = Duration::from_hours(6);
/// Time after its last write for which this host remembers a place of its own. NATS keeps it for twice this time.
const REMEMBER_OWN: Duration = Duration::from_hours(24);
/// Time for which this host remembers where another host has a session.
const REMEMBER_OTHERS: Duration = Duration::from_hours(1);
/// Maximum number of places that this host remembers. Further ones are read from NATS for each run.
/// Bound: hosts of a cluster.
const REMEMBERED_MAX: usize = 65_536;
/// Maximum number of sessions with new names of one client in an hour, after 60 at once, so that no client fills the table of places, which
/// keeps each for two days.
/// Bound: hosts of a cluster.
const NEW_PLACES_PER_HOUR: u32 = 600;
const NEW_PLACES: Rate = Rate::new(NEW_PLACES_PER_HOUR, Duration::from_hours(1), 60);

/// Why the place of a session is not known, as a clause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceFault {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("this client has begun too many sessions; wait some minutes, or use one that it has")]
    TooManySessions,
    #[error("a host of another version has written it")]
    Unreadable,
}

/// Where a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionPlace {
    /// On this host, which had it before, or has it from now on.
    Here,
    /// On the host with this tag, if that has not ended.
    At(HostTag, Revision),
}

/// The number of the write of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revision(u64);

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    host: HostTag,
}

/// The places of sessions. Clones share them.
#[derive(Clone, Debug)]
pub struct SessionPlaces(Arc<SessionPlacesInner>);

#[derive(Debug)]
struct SessionPlacesInner {
    state: SharedState,
    own: HostTag,
    /// Where sessions are, so that their runs need no exchange with NATS.
    remembered: Mutex<HashMap<String, Remembered>>,
    new_places: KeyedLimiter<Owner>,
}

#[derive(Clone, Copy, Debug)]
struct Remembered {
    host: HostTag,
    revision: u64,
    at: Instant,
}

impl SessionPlaces {
    pub(crate) fn new(state: SharedState, own: HostTag) -> Self {
        Self(Arc::new(SessionPlacesInner {
            state,
            own,
            remembered: Mutex::default(),
            new_places: KeyedLimiter::default(),
        }))
    }

    /// Returns where a session is. If it is nowhere, it is on this host from now on. `is_alive` says whether another host has not
    /// ended.
    ///
    /// # Errors
    /// [`PlaceFault`] if this host does not remember where the session is, and NATS does not say it.
    pub async fn find(
        &self,
        owner: Owner,
        name: &str,
        is_alive: impl Fn(HostTag) -> bool,
    ) -> Result<SessionPlace, PlaceFault> {
        let key = key(owner, name);
        let remembered = self.0.remembered.lock().get(&key).copied();
        if let Some(Remembered { host, revision, at }) = remembered {
            let age = at.elapsed();
            if host == self.0.own && age < REMEMBER_OWN {
                if age >= REWRITE_AFTER {
                    self.rewrite(key, revision);
                }
                return Ok(SessionPlace::Here);
            }
            if host != self.0.own && age < REMEMBER_OTHERS && is_alive(host) {
                return Ok(SessionPlace::At(host, Revision(revision)));
            }
        }
        let Some(stored) = self.0.state.get(Table::Sessions, &key).await? else {
            let now = Instant::now().into_std();
            if self.0.new_places.bucket(owner, NEW_PLACES, now).reserve(Duration::ZERO, now).is_err() {
                return Err(PlaceFault::TooManySessions);
            }
            let created = self.0.state.create(Table::Sessions, &key, self.value()).await?;
            self.remember(key, self.0.own, created.ok_or_else(Unavailable::changing)?);
            return Ok(SessionPlace::Here);
        };
        let record = serde_json::from_slice::<Record>(&stored.value);
        let Record { host } = record.map_err(|_| PlaceFault::Unreadable)?;
        self.remember(key.clone(), host, stored.revision);
        let age = SystemTime::now().duration_since(stored.written).unwrap_or_default();
        if host == self.0.own && age >= REWRITE_AFTER {
            self.rewrite(key, stored.revision);
        }
        Ok(match host == self.0.own {
            true => SessionPlace::Here,
            false => SessionPlace::At(host, Revision(stored.revision)),
        })
    }

    /// Forgets where a session is, because it was not there.
    pub fn forget(&self, owner: Owner, name: &str) {
        self.0.remembered.lock().remove(&key(owner, name));
    }

    /// Takes the session of a host that has ended: it is on this host from now on.
    ///
    /// # Errors
    /// [`Unavailable`] if NATS cannot say so, or another host has taken it meanwhile.
    pub async fn take_over(&self, owner: Owner, name: &str, seen: Revision) -> Result<(), Unavailable> {
        match self.write(&key(owner, name), seen.0).await? {
            true => Ok(()),
            false => Err(Unavailable::changing()),
        }
    }

    /// Writes a place of this host again, in the background, so that NATS keeps it.
    fn rewrite(&self, key: String, revision: u64) {
        let places = self.clone();
        tokio::spawn(async move { drop(places.write(&key, revision).await) });
    }

    /// Writes this host as the place of a session over the write that was seen last. Returns `false` if there was another one.
    async fn write(&self, key: &str, seen: u64) -> Result<bool, Unavailable> {
        let written = self.0.state.update(Table::Sessions, key, self.value(), seen).await?;
        match written {
            Some(revision) => self.remember(key.to_owned(), self.0.own, revision),
            None => drop(self.0.remembered.lock().remove(key)),
        }
        Ok(written.is_some())
    }

    fn remember(&self, key: String, host: HostTag, revision: u64) {
        let mut remembered = self.0.remembered.lock();
        let now = Instant::now();
        if remembered.len() >= REMEMBERED_MAX {
            remembered.retain(|_, known| now.duration_since(known.at) < REMEMBER_OTHERS);
        }
        if remembered.len() < REMEMBERED_MAX {
            remembered.insert(key, Remembered { host, revision, at: now });
        }
    }

    fn value(&self) -> Bytes {
        // A text.
        serde_json::to_vec(&Record { host: self.0.own }).unwrap_or_default().into()
    }
}

/// Returns the key of a session: its client, and a digest of its name, which may have any length and form.
fn key(owner: Owner, name: &str) -> String {
    format!("{}.{}", owner.to_hex(), digest_key(name))
}
