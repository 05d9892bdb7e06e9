//! The stored results that a viewer can download: those that Lockhouse processes hold in memory, and those of
//! `lockhouse run` in files.

use std::time::{Duration, SystemTime};

use lockhouse_base::json;
use lockhouse_messages::{OperatorRequest, OperatorResponse, Owner, ResultListing};
use lockhouse_page::{ActionError, Attachment, ErrorCode};
use lockhouse_protocol::ResultHandle;
use lockhouse_stores::results::Results;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use super::stable_times::StableTimes;
use crate::cli::control_client::{request_all, request_one};
use crate::cli::result::open_results;
use lockhouse_config::{self as config, Files};

/// Maximum number of results on the page: the latest ones.
const RESULTS_MAX: usize = 200;
/// Maximum bytes of a result that can be downloaded.
const DOWNLOAD_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The beginning of the ids of results in files.
const IN_FILES: &str = "files";

pub(super) struct KeptResults {
    files: Files,
    times: Mutex<StableTimes>,
}

impl KeptResults {
    pub(super) fn new(files: &Files) -> Self {
        Self { files: files.clone(), times: Mutex::default() }
    }

    /// Returns the section of results.
    pub(super) async fn list(&self) -> Value {
        let mut listed: Vec<(String, Option<u32>, ResultListing)> = Vec::new();
        for (supervisor, response) in request_all(&OperatorRequest::ListResults).await {
            let OperatorResponse::Results(results) = response else { continue };
            let results = results.into_iter();
            listed.extend(
                results.map(|result| (format!("{supervisor}-{}", result.handle), Some(supervisor), result)),
            );
        }
        let in_files = self.open_files().map(|results| results.list()).unwrap_or_default();
        listed.extend(
            in_files.into_iter().map(|result| (format!("{IN_FILES}-{}", result.handle), None, result)),
        );
        listed.sort_by(|(_, _, one), (_, _, other)| one.age_s.total_cmp(&other.age_s));
        listed.truncate(RESULTS_MAX);
        let mut times = self.times.lock();
        let mut row = |(id, supervisor, result): (String, Option<u32>, ResultListing)| {
            let stored = times.began(id.clone(), result.age_s);
            let lifetime = Duration::try_from_secs_f64(result.age_s + result.expires_s).unwrap_or_default();
            let expires =
                humantime::parse_rfc3339(&stored).unwrap_or(SystemTime::UNIX_EPOCH).checked_add(lifetime);
            json!({
                "id": id, "supervisor": supervisor, "client": null, "kind": result.kind, "name": null,
                "execution": null, "bytes": result.bytes, "stored": stored,
                "expires": expires.map(|time| humantime::format_rfc3339_seconds(time).to_string()),
            })
        };
        let rows: Value = listed.into_iter().map(&mut row).collect();
        times.forget_others();
        json!({"results": rows})
    }

    /// Returns the result with this id, which the section of results lists.
    pub(super) async fn download(&self, id: &str) -> Result<Attachment, ActionError> {
        let not_found = || {
            ActionError::new(ErrorCode::NotFound, "this result has expired, or newer ones needed its space")
        };
        let (place, handle) = id.split_once('-').ok_or_else(not_found)?;
        let handle = ResultHandle::new(handle).map_err(|_| not_found())?;
        let text = match place.parse::<u32>() {
            Ok(supervisor) => read_from(supervisor, &handle).await?,
            Err(_) => {
                let results = self.open_files().ok_or_else(not_found)?;
                results.get(Owner::LOCAL, &handle).map_err(|_| not_found())?.to_string()
            }
        };
        Ok(to_attachment(&handle, text))
    }

    fn open_files(&self) -> Option<Results> {
        let bounds = config::load_result_bounds(&self.files).ok()?;
        Some(open_results(bounds.results))
    }
}

/// Reads a result from a Lockhouse process, a part at a time.
async fn read_from(supervisor: u32, handle: &ResultHandle) -> Result<String, ActionError> {
    let mut text = String::new();
    loop {
        let request = OperatorRequest::ReadResult { handle: handle.clone(), offset: text.len() as u64 };
        match request_one(supervisor, &request).await {
            Ok(OperatorResponse::ResultPart { text: part, is_last }) => {
                text.push_str(&part);
                if is_last {
                    return Ok(text);
                }
                if part.is_empty() || text.len() > DOWNLOAD_BYTES_MAX {
                    let message = format!("the result has more than {DOWNLOAD_BYTES_MAX} bytes");
                    return Err(ActionError::new(ErrorCode::Failed, message));
                }
            }
            Ok(OperatorResponse::Refused { reason }) => {
                return Err(ActionError::new(ErrorCode::NotFound, reason));
            }
            _ => {
                return Err(ActionError::new(
                    ErrorCode::Failed,
                    "the Lockhouse process did not return the result",
                ));
            }
        }
    }
}

/// A file that a program returned as its value.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileValue {
    base64: String,
    #[serde(rename = "mime_type")]
    _mime_type: String,
    name: Option<String>,
}

/// Returns a result as a file: a file value as the file itself, a text as text, and everything else as JSON.
fn to_attachment(handle: &ResultHandle, json: String) -> Attachment {
    if let Ok(FileValue { base64, name, .. }) = serde_json::from_str(&json)
        && let Ok(content) = data_encoding::BASE64.decode(base64.as_bytes())
    {
        return Attachment { name: name.unwrap_or_else(|| handle.to_string()), content };
    }
    match json::decode_string(&json) {
        Some(text) => Attachment { name: format!("{handle}.txt"), content: text.into_bytes() },
        None => Attachment { name: format!("{handle}.json"), content: json.into_bytes() },
    }
}
