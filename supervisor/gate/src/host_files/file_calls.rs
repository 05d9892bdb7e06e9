//! The calls of the built-in server `files`: their arguments, and their results as JSON.

use std::os::unix::fs::FileExt;
use std::path::Path;

use data_encoding::BASE64;
use lockhouse_policies::CallTarget;
use lockhouse_protocol::{Failure, FailureCode};
use serde_json::{Map, Value, json};

use super::file_system::{self, FileError, FileFacts};
use super::{Access, HostFiles};
use crate::failures::{failure, invalid_arguments};

/// Maximum number of entries in the list of one folder.
const ENTRIES_MAX: usize = 1_000;

/// A call of one of the server's tools, without its path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FileCall {
    Read {
        offset: u64,
        /// `None` for as many bytes as one result may have.
        length: Option<usize>,
    },
    List,
    Stat,
    Write {
        content: Content,
    },
}

/// The content of a file that is written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Whole(Vec<u8>),
    /// The program sends this number of bytes in pieces.
    Streamed(u64),
}

impl FileCall {
    /// Parses the arguments of a call, which match the schema of the tool.
    ///
    /// # Errors
    /// If the call is not of a tool, or has no content to write.
    pub(crate) fn parse(item: &CallTarget, arguments: &Map<String, Value>) -> Result<Self, Failure> {
        let CallTarget::Tool(tool) = item else {
            let message = "this server has no resources and no prompts".to_owned();
            return Err(failure(FailureCode::UnknownTool, message));
        };
        let number = |name: &str| arguments.get(name).and_then(Value::as_u64);
        Ok(match tool.as_str() {
            "read" => Self::Read {
                offset: number("offset").unwrap_or(0),
                length: number("length").map(|length| usize::try_from(length).unwrap_or(usize::MAX)),
            },
            "list" => Self::List,
            "stat" => Self::Stat,
            _ => Self::Write { content: Content::parse(arguments)? },
        })
    }

    pub(crate) fn access(&self) -> Access {
        match self {
            Self::Read { .. } => Access::Read,
            Self::List | Self::Stat => Access::Browse,
            Self::Write { .. } => Access::Write,
        }
    }
}

impl Content {
    fn parse(arguments: &Map<String, Value>) -> Result<Self, Failure> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        match (text("text"), text("base64"), arguments.get("bytes").and_then(Value::as_u64)) {
            (Some(text), None, None) => Ok(Self::Whole(text.as_bytes().to_vec())),
            (None, Some(base64), None) => match BASE64.decode(base64.as_bytes()) {
                Ok(bytes) => Ok(Self::Whole(bytes)),
                Err(error) => Err(invalid_arguments(format!("base64 is not valid: {error}"))),
            },
            (None, None, Some(bytes)) => Ok(Self::Streamed(bytes)),
            _ => Err(invalid_arguments("give either text or base64".into())),
        }
    }
}

/// Makes a call with a path without symbolic links, and returns the result as JSON. `bytes_max` is the maximum size of
/// the result. Blocks.
pub(crate) fn perform(
    files: &HostFiles,
    call: FileCall,
    path: &str,
    bytes_max: usize,
) -> Result<Vec<u8>, Failure> {
    let about = |error: FileError| file_failure(path, &error);
    let real = Path::new(path);
    let result = match call {
        FileCall::Read { offset, length } => {
            read_piece(files, real, offset, length, bytes_max).map_err(about)?
        }
        FileCall::Stat => {
            let facts = file_system::stat(real, &files.reserved_places()).map_err(about)?;
            if !files.shows(real, &facts) {
                return Err(about(FileError::NotFound));
            }
            let mut result = facts_json(&facts);
            result["path"] = path.into();
            result
        }
        FileCall::List => {
            let shows = |name: &str, facts: &FileFacts| files.shows(&real.join(name), facts);
            let listed = file_system::list(real, ENTRIES_MAX, &files.reserved_places(), shows);
            let (entries, is_cut) = listed.map_err(about)?;
            let entry = |(name, facts): &(String, FileFacts)| {
                let mut entry = facts_json(facts);
                entry["name"] = name.as_str().into();
                entry
            };
            json!({"path": path, "entries": entries.iter().map(entry).collect::<Value>(), "cut": is_cut})
        }
        FileCall::Write { content: Content::Whole(content) } => {
            let bytes = content.len() as u64;
            require_size(files, bytes).map_err(about)?;
            let mut file = files.create_file(real).map_err(about)?;
            file.write(&content).and_then(|()| file.finish()).map_err(about)?;
            json!({"path": path, "bytes": bytes})
        }
        FileCall::Write { content: Content::Streamed(_) } => {
            return Err(invalid_arguments("give either text or base64".into()));
        }
    };
    Ok(json!({"structured": result}).to_string().into_bytes())
}

/// Fails if a file of this size may not be written.
pub(crate) fn require_size(files: &HostFiles, bytes: u64) -> Result<(), FileError> {
    let most = files.settings().file_bytes;
    if bytes > most { Err(FileError::TooLarge { bytes, most }) } else { Ok(()) }
}

fn read_piece(
    files: &HostFiles,
    path: &Path,
    offset: u64,
    length: Option<usize>,
    bytes_max: usize,
) -> Result<Value, FileError> {
    let (file, total) = files.open_file(path)?;
    // Base64 has four characters for three bytes; the rest of the result is short, apart from the path.
    let most = bytes_max.saturating_sub(8 * 1024) / 4 * 3;
    let left = usize::try_from(total.saturating_sub(offset)).unwrap_or(usize::MAX);
    let mut piece = vec![0; length.unwrap_or(most).min(most).min(left)];
    file.read_exact_at(&mut piece, offset)?;
    let next = offset + piece.len() as u64;
    let mut result = json!({"bytes": total, "offset": offset});
    if next < total {
        result["next_offset"] = next.into();
    }
    result["base64"] = BASE64.encode(&piece).into();
    Ok(result)
}

fn facts_json(facts: &FileFacts) -> Value {
    let kind = if facts.is_folder { "folder" } else { "file" };
    json!({"kind": kind, "bytes": facts.bytes, "modified": facts.modified})
}

/// Converts an error of the file system to the failure of a call. The code tells programs which error of their language
/// it is.
pub(crate) fn file_failure(path: &str, error: &FileError) -> Failure {
    let code = match error {
        FileError::NotFound => FailureCode::NotFound,
        FileError::TooLarge { .. } => FailureCode::ResultTooLarge,
        FileError::Reserved => FailureCode::Denied,
        _ => FailureCode::ToolFailed,
    };
    failure(code, format!("{path}: {error}"))
}
