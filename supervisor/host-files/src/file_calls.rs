//! The calls of the built-in server `files`: their arguments, and their results as JSON.

use std::os::unix::fs::FileExt;
use std::path::Path;

use data_encoding::BASE64;
use lockhouse_policies::CallTarget;
use lockhouse_protocol::{Failure, FailureCode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::file_error::FileError;
use super::file_system::{self, FileFacts, FolderEntry};
use super::{Access, HostFiles};
use crate::staged_file::StagedContent;

/// Maximum number of entries in the list of one folder.
/// Bound: files of the host.
const ENTRIES_MAX: usize = 1_000;

/// A call of one of the server's tools, without its path.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileCall {
    Read {
        offset: u64,
        /// `None` for as many bytes as one result may have.
        length: Option<usize>,
    },
    List,
    Stat,
    Write {
        content: Content,
        /// The file that was at the path when the call was decided, as [`HostFiles::describe_existing`](super::HostFiles::describe_existing)
        /// describes it; `None` if there was none.
        replaces: Option<String>,
    },
    MakeFolder,
}

/// The content of a file that is written.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    Whole(#[serde(with = "serde_bytes")] Vec<u8>),
    /// The program has sent it in pieces, and the arguments describe it.
    Staged,
}

impl FileCall {
    /// Parses the arguments of a call, which match the schema of the tool.
    ///
    /// # Errors
    /// If the call is not of a tool, or has no content to write.
    pub fn parse(item: &CallTarget, arguments: &Map<String, Value>) -> Result<Self, Failure> {
        let CallTarget::Tool(tool) = item else {
            let message = "this server has no resources and no prompts".to_owned();
            return Err(Failure::new(FailureCode::UnknownTool, message));
        };
        let number = |name: &str| arguments.get(name).and_then(Value::as_u64);
        Ok(match tool.as_str() {
            "read" => Self::Read {
                offset: number("offset").unwrap_or(0),
                length: number("length").map(|length| usize::try_from(length).unwrap_or(usize::MAX)),
            },
            "list" => Self::List,
            "stat" => Self::Stat,
            "mkdir" => Self::MakeFolder,
            _ => Self::Write {
                content: Content::parse(arguments)?,
                replaces: arguments.get("replaces").and_then(Value::as_str).map(str::to_owned),
            },
        })
    }

    pub fn access(&self) -> Access {
        match self {
            Self::Read { .. } => Access::Read,
            Self::List | Self::Stat => Access::Browse,
            Self::Write { .. } => Access::Write,
            Self::MakeFolder => Access::MakeFolder,
        }
    }
}

impl Content {
    fn parse(arguments: &Map<String, Value>) -> Result<Self, Failure> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        match (text("text"), text("base64"), text("sha256")) {
            (Some(text), None, None) => Ok(Self::Whole(text.as_bytes().to_vec())),
            (None, Some(base64), None) => match BASE64.decode(base64.as_bytes()) {
                Ok(bytes) => Ok(Self::Whole(bytes)),
                Err(error) => {
                    Err(Failure::new(FailureCode::InvalidArguments, format!("base64 is not valid: {error}")))
                }
            },
            (None, None, Some(_)) => Ok(Self::Staged),
            _ => Err(Failure::new(FailureCode::InvalidArguments, "give either text or base64".into())),
        }
    }
}

/// Makes a call with a path without symbolic links, and returns the result as JSON. `bytes_max` is the maximum size of
/// the result. Blocks.
pub fn perform(files: &HostFiles, call: FileCall, path: &str, bytes_max: usize) -> Result<Vec<u8>, Failure> {
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
            let (entries, is_cut) = files.list(real, ENTRIES_MAX).map_err(about)?;
            json!({"path": path, "entries": entries.iter().map(entry_json).collect::<Value>(), "cut": is_cut})
        }
        FileCall::MakeFolder => json!({"path": path, "created": files.make_folder(real).map_err(about)?}),
        FileCall::Write { content: Content::Whole(content), replaces } => {
            let bytes = content.len() as u64;
            require_size(files, bytes).map_err(about)?;
            let mut file = files.create_file(real, replaces.as_deref()).map_err(about)?;
            file.write(&content).and_then(|()| file.finish()).map_err(about)?;
            json!({"path": path, "bytes": bytes})
        }
        FileCall::Write { content: Content::Staged, .. } => {
            return Err(Failure::new(FailureCode::InvalidArguments, "give either text or base64".into()));
        }
    };
    Ok(json!({"structured": result}).to_string().into_bytes())
}

/// Writes a file whose content has arrived in pieces, and returns the result of the call as JSON. `replaces` is as in
/// [`FileCall::Write`]. Blocks.
pub fn write_staged(
    files: &HostFiles,
    content: &StagedContent,
    path: &str,
    replaces: Option<&str>,
) -> Result<Vec<u8>, Failure> {
    let mut offset = 0;
    let pieces = std::iter::from_fn(|| {
        let piece = content.piece(offset).map_err(FileError::from);
        offset += piece.as_ref().map_or(0, Vec::len) as u64;
        Some(piece).filter(|piece| !matches!(piece, Ok(piece) if piece.is_empty()))
    });
    write_pieces(files, pieces, path, replaces)
}

/// Writes a file from its pieces, and returns the result of the call as JSON. `replaces` is as in [`FileCall::Write`].
/// Blocks.
pub(crate) fn write_pieces(
    files: &HostFiles,
    pieces: impl Iterator<Item = Result<Vec<u8>, FileError>>,
    path: &str,
    replaces: Option<&str>,
) -> Result<Vec<u8>, Failure> {
    let write = || -> Result<u64, FileError> {
        let mut file = files.create_file(Path::new(path), replaces)?;
        let mut bytes = 0;
        for piece in pieces {
            let piece = piece?;
            bytes += piece.len() as u64;
            file.write(&piece)?;
        }
        file.finish()?;
        Ok(bytes)
    };
    let bytes = write().map_err(|error| file_failure(path, &error))?;
    Ok(json!({"structured": {"path": path, "bytes": bytes}}).to_string().into_bytes())
}

/// Replaces the argument `base64` by the argument `text` if it is the base64 of text, which an approver can read.
pub fn make_content_readable(arguments: &mut Map<String, Value>) {
    let base64 = arguments.get("base64").and_then(Value::as_str);
    let decoded = base64.and_then(|base64| BASE64.decode(base64.as_bytes()).ok());
    if let Some(text) = decoded.and_then(|bytes| String::from_utf8(bytes).ok()) {
        arguments.remove("base64");
        arguments.insert("text".into(), text.into());
    }
}

/// Fails if a file of this size may not be written.
pub fn require_size(files: &HostFiles, bytes: u64) -> Result<(), FileError> {
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

fn entry_json(entry: &FolderEntry) -> Value {
    let mut json = facts_json(&entry.facts);
    json["name"] = entry.name.as_str().into();
    if let Some(target) = &entry.target {
        json["target"] = target.as_str().into();
    }
    json
}

fn facts_json(facts: &FileFacts) -> Value {
    let kind = if facts.is_folder { "folder" } else { "file" };
    json!({"kind": kind, "bytes": facts.bytes, "modified": facts.modified})
}

/// Converts an error of the file system to the failure of a call. The code tells programs which error of their language
/// it is; where several errors have one code, the name of the error at the end of the message does.
pub fn file_failure(path: &str, error: &FileError) -> Failure {
    let code = match error {
        FileError::NotFound | FileError::NoFolder => FailureCode::NotFound,
        FileError::TooLarge { .. } => FailureCode::ResultTooLarge,
        FileError::Reserved => FailureCode::Denied,
        _ => FailureCode::ToolFailed,
    };
    let name = error.errno_name().map(|name| format!(" ({name})")).unwrap_or_default();
    Failure::new(code, format!("{path}: {error}{name}"))
}
