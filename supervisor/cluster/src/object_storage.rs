//! Stores objects in a bucket of an S3 server. Nothing else names the library for that.
//!
//! No request has a condition: servers differ in what they make of it. So each key is written once, with a name that nobody guesses.

#[cfg(test)]
mod tests;

use std::error::Error as _;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::client::{HttpError, HttpErrorKind};
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, Error, ObjectStore as _, ObjectStoreExt as _, RetryConfig};
use tokio::time::timeout;

use crate::value_settings::{StorageCredentials, ValuePlace};

/// Maximum time until a connection to the server is open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum time to write one object.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time until the server answers a request for an object, and then until it sends each further part. A client waits for it.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time to read one object.
const WHOLE_READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum time to list the objects and to remove old ones. What is left is removed the next time.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(120);
/// Further attempts for a request that failed.
const RETRIES_MAX: usize = 2;
/// Maximum time from the first attempt to the last one.
const RETRY_TIMEOUT: Duration = Duration::from_secs(3);
/// Number of objects that are removed at one time.
const REMOVALS: usize = 4;

/// Why the S3 server has not done what was asked, as a clause. No text of the server is in it: that can have the keys of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    #[error("the S3 server cannot be reached")]
    Unreachable,
    #[error("the S3 server did not answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error("the S3 server refuses access: see the keys, the region and the permissions of [cluster.values]")]
    Refused,
    #[error("the S3 server does not have the bucket of [cluster.values]")]
    NoBucket,
    #[error("the object is larger than a stored value can be")]
    TooLarge,
    #[error("the S3 server has failed")]
    Failed,
}

/// A bucket cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the connection to the S3 server of [cluster.values] cannot be prepared: see whether the system has trusted certificates"
)]
pub struct NoStorage;

/// A folder of a bucket.
#[derive(Debug)]
pub(crate) struct ObjectStorage {
    bucket: AmazonS3,
    prefix: Path,
}

impl ObjectStorage {
    /// Prepares requests, and sends none.
    pub(crate) fn new(place: &ValuePlace, credentials: &StorageCredentials) -> Result<Self, NoStorage> {
        let options = ClientOptions::new()
            .with_connect_timeout(CONNECT_TIMEOUT)
            .with_timeout(WRITE_TIMEOUT)
            .with_allow_http(!place.endpoint.uses_tls());
        let backoff = BackoffConfig { max_backoff: Duration::from_secs(1), ..BackoffConfig::default() };
        let retry = RetryConfig { backoff, max_retries: RETRIES_MAX, retry_timeout: RETRY_TIMEOUT };
        let bucket = AmazonS3Builder::new()
            .with_endpoint(place.endpoint.as_str())
            .with_bucket_name(place.bucket.as_str())
            .with_region(&place.region)
            .with_access_key_id(&credentials.access_key)
            .with_secret_access_key(&credentials.secret_key)
            .with_disable_bulk_delete(true)
            .with_client_options(options)
            .with_retry(retry)
            .build()
            .map_err(|_| NoStorage)?;
        Ok(Self { bucket, prefix: Path::from(place.prefix.as_str()) })
    }

    /// Writes an object. Its name is written once.
    pub(crate) async fn write(&self, name: &str, content: Vec<u8>) -> Result<(), ObjectError> {
        let path = self.prefix.clone().join(name);
        let written = timeout(WRITE_TIMEOUT, self.bucket.put(&path, Bytes::from(content).into())).await;
        match written.map_err(|_| ObjectError::TimedOut(WRITE_TIMEOUT))? {
            Ok(_) => Ok(()),
            Err(Error::NotFound { .. }) => Err(ObjectError::NoBucket),
            Err(error) => Err(kind(&error, WRITE_TIMEOUT)),
        }
    }

    /// Reads an object of at most `bytes_max` bytes. `None` if there is none with this name.
    pub(crate) async fn read(&self, name: &str, bytes_max: u64) -> Result<Option<Vec<u8>>, ObjectError> {
        let path = self.prefix.clone().join(name);
        let reading = async {
            let found = match in_time(self.bucket.get(&path)).await? {
                Ok(found) => found,
                Err(Error::NotFound { .. }) => return Ok(None),
                Err(error) => return Err(kind(&error, READ_TIMEOUT)),
            };
            // The length that the server says is not what it sends.
            let (mut content, mut parts) = (Vec::new(), found.into_stream());
            while let Some(part) =
                in_time(parts.try_next()).await?.map_err(|error| kind(&error, READ_TIMEOUT))?
            {
                if (content.len() + part.len()) as u64 > bytes_max {
                    return Err(ObjectError::TooLarge);
                }
                content.extend_from_slice(&part);
            }
            Ok(Some(content))
        };
        timeout(WHOLE_READ_TIMEOUT, reading).await.map_err(|_| ObjectError::TimedOut(WHOLE_READ_TIMEOUT))?
    }

    /// Removes the objects with names that `is_own` that were written before `time`, by the clock of the server. Returns their number.
    pub(crate) async fn remove_older(
        &self,
        time: SystemTime,
        is_own: impl Fn(&str) -> bool,
    ) -> Result<usize, ObjectError> {
        let error = |error: Error| kind(&error, REMOVE_TIMEOUT);
        let removing = async {
            let listed = self.bucket.list(Some(&self.prefix)).map_err(error);
            let is_old = |meta: &object_store::ObjectMeta| {
                SystemTime::from(meta.last_modified) < time
                    && meta
                        .location
                        .filename()
                        .is_some_and(|name| is_own(name) && meta.location == self.prefix.clone().join(name))
            };
            let old = listed.try_filter(|meta| std::future::ready(is_old(meta)));
            let removed = old.map_ok(async |meta| match self.bucket.delete(&meta.location).await {
                // Another host was faster.
                Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
                Err(failed) => Err(error(failed)),
            });
            removed
                .try_buffer_unordered(REMOVALS)
                .try_fold(0, |count, ()| std::future::ready(Ok(count + 1)))
                .await
        };
        timeout(REMOVE_TIMEOUT, removing).await.map_err(|_| ObjectError::TimedOut(REMOVE_TIMEOUT))?
    }
}

/// Waits for one step of a read.
async fn in_time<T>(step: impl Future<Output = T>) -> Result<T, ObjectError> {
    timeout(READ_TIMEOUT, step).await.map_err(|_| ObjectError::TimedOut(READ_TIMEOUT))
}

fn kind(error: &Error, limit: Duration) -> ObjectError {
    if let Error::PermissionDenied { .. } | Error::Unauthenticated { .. } = error {
        return ObjectError::Refused;
    }
    let mut source = error.source();
    while let Some(cause) = source {
        match cause.downcast_ref::<HttpError>().map(HttpError::kind) {
            Some(HttpErrorKind::Connect) => return ObjectError::Unreachable,
            Some(HttpErrorKind::Timeout) => return ObjectError::TimedOut(limit),
            _ => source = cause.source(),
        }
    }
    ObjectError::Failed
}
