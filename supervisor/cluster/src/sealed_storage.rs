//! Seals copies of stored values, and stores them in a bucket.

use std::time::SystemTime;

use lockhouse_base::sealing_key::SealingKeys;
use lockhouse_messages::Owner;

use crate::copied_value::{CopiedValue, HEAD_BYTES_MAX, is_object_name, object_name};
use crate::object_storage::{NoStorage, ObjectError, ObjectStorage};
use crate::value_settings::{ValuePlace, ValueSettings};

/// Why a copy was not written, as a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WriteError {
    #[error(transparent)]
    Object(#[from] ObjectError),
    #[error("the crypto library fails")]
    Sealing,
}

/// The copies in their bucket, and the keys that seal them.
#[derive(Debug)]
pub(crate) struct SealedStorage {
    storage: ObjectStorage,
    sealing: SealingKeys,
    place: ValuePlace,
}

impl SealedStorage {
    pub(crate) fn new(settings: &ValueSettings) -> Result<Self, NoStorage> {
        let (place, sealing) = (settings.place.clone(), settings.sealing.clone());
        Ok(Self { storage: ObjectStorage::new(&place, &settings.credentials)?, sealing, place })
    }

    /// Writes the copy of a value.
    pub(crate) async fn write(&self, value: CopiedValue) -> Result<(), WriteError> {
        let name = object_name(&value.handle);
        let (key, context) = (self.sealing.key(&value.handle), self.context(&name));
        let object = off_thread(move || key?.encrypt(&context, &value.encode()?)).await;
        Ok(self.storage.write(&name, object.ok_or(WriteError::Sealing)?).await?)
    }

    /// Reads the copy of a value of this owner, of at most `bytes_max` bytes. `None` if there is none, or it is not of this owner.
    pub(crate) async fn read(
        &self,
        owner: Owner,
        handle: &str,
        bytes_max: u64,
    ) -> Result<Option<CopiedValue>, ObjectError> {
        let name = object_name(handle);
        let read = self.storage.read(&name, bytes_max.saturating_add(HEAD_BYTES_MAX)).await;
        let Some(object) = read? else { return Ok(None) };
        let (key, context) = (self.sealing.key(handle), self.context(&name));
        let value =
            off_thread(move || Some(CopiedValue::decode(key?.decrypt(&context, object)?, owner))).await;
        let Some(value) = value else {
            tracing::warn!(
                "the copy {name} of a value is not used: it was not sealed with this shared_key of [cluster]"
            );
            return Ok(None);
        };
        Ok(value.filter(|value| value.handle == handle))
    }

    /// Removes the copies that were written before `time`, of all hosts. Returns their number.
    pub(crate) async fn remove_older(&self, time: SystemTime) -> Result<usize, ObjectError> {
        self.storage.remove_older(time, is_object_name).await
    }

    /// Returns what a copy is bound to: its key.
    fn context(&self, name: &str) -> Vec<u8> {
        format!("{}/{name}", self.place.prefix.as_str()).into_bytes()
    }
}

/// Encrypts or decrypts on another thread, because large values take milliseconds.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> Option<T> + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok().flatten()
}
