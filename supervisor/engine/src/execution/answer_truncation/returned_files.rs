//! The files of an answer: those in the value of the program, and those that the program wrote below `/out`. They are
//! stored, and the answer contains the small images and sounds themselves and links to the others.

use std::io::Read;

use data_encoding::BASE64;
use lockhouse_gate::ReturnedFiles;
use lockhouse_messages::{FileReport, Media, Owner, ResultFile, StoredFileReport};
use lockhouse_stores::result_files::{ResultFiles, StoredFile, UNKNOWN, default_name};
use serde_json::json;

use super::embedded_files::File;
use crate::execution::display_limits::{BARE_BYTES_MAX, FILE_BYTES_MAX, FILES_MAX};

/// Where the files of an answer are stored, and for whom.
#[derive(Clone, Copy)]
pub struct FileStorage<'a> {
    pub files: &'a ResultFiles,
    pub owner: Owner,
}

/// The files of one answer.
pub(super) struct AnswerFiles<'a> {
    storage: FileStorage<'a>,
    /// The files for the content of the answer.
    pub(super) blocks: Vec<ResultFile>,
    /// The reports about stored files and files that are not stored.
    pub(super) reports: Vec<FileReport>,
    /// Total decoded size of the files whose content the answer contains.
    bytes: usize,
    /// Number of files in the value that are neither in the answer nor stored.
    pub(super) omitted: usize,
}

impl<'a> AnswerFiles<'a> {
    pub(super) fn new(storage: FileStorage<'a>) -> Self {
        Self { storage, blocks: Vec::new(), reports: Vec::new(), bytes: 0, omitted: 0 }
    }

    /// Moves a file out of the value. Returns the JSON object that replaces it there; `None` for a few bytes and for text
    /// that is not the base64 of any bytes, which stay.
    pub(super) fn extract(&mut self, file: &File<'_>) -> Option<String> {
        let mime_type = match file.media_type() {
            Some(mime_type) => mime_type,
            None if file.bytes() > BARE_BYTES_MAX => UNKNOWN.to_owned(),
            None => return None,
        };
        let content = BASE64.decode(file.base64.as_bytes()).ok()?;
        let FileStorage { files, owner } = self.storage;
        let name = file.name.as_deref().map_or_else(|| default_name(&mime_type), str::to_owned);
        let stored = files.store(owner, &name, mime_type.clone(), &content);
        let stored = stored.inspect_err(|error| tracing::warn!("a file of an answer: {error}")).ok();
        let name =
            stored.as_ref().map(|stored| stored.name.clone()).or(file.name.as_deref().map(str::to_owned));
        let handle = stored.map(|stored| stored.handle);
        let mut stand_in = json!({"content": null, "mime_type": mime_type, "bytes": file.bytes()});
        if let Some(name) = &file.name {
            stand_in["name"] = name.as_ref().into();
        }
        let described = ResultFile { content: None, mime_type, name, bytes: file.bytes() as u64, handle };
        match self.add(described, |_| Some(content)) {
            Some(content) => stand_in["content"] = content.into(),
            None => {
                self.omitted += 1;
                stand_in["left_out"] =
                    format!("at most {FILES_MAX} files with {FILE_BYTES_MAX} bytes in total are shown")
                        .into();
            }
        }
        Some(stand_in.to_string())
    }

    /// Adds the files that the program wrote below `/out`. Blocks.
    pub(super) fn add_returned(&mut self, returned: &ReturnedFiles) {
        for StoredFile { handle, name, media_type, bytes } in returned.stored.clone() {
            let (mime_type, name, handle) = (media_type, Some(name), Some(handle));
            let described = ResultFile { content: None, mime_type, name, bytes, handle };
            let storage = self.storage;
            self.add(described, |file| read(storage, file));
        }
        let left_out = returned.left_out.iter();
        self.reports.extend(
            left_out.map(|file| FileReport::LeftOut { name: file.name.clone(), reason: file.reason.clone() }),
        );
    }

    /// Adds a file to the content of the answer, with its bytes (`content`) or as a link. Returns its number in the
    /// content, counted from 1; `None` if it is neither.
    fn add(
        &mut self,
        mut file: ResultFile,
        content: impl FnOnce(&ResultFile) -> Option<Vec<u8>>,
    ) -> Option<usize> {
        let is_media = file.media() != Media::None;
        let bytes = usize::try_from(file.bytes).unwrap_or(usize::MAX);
        let fits = self.blocks.len() < FILES_MAX && self.bytes.saturating_add(bytes) <= FILE_BYTES_MAX;
        if fits && (is_media || file.handle.is_none()) {
            file.content = content(&file);
            self.bytes += file.content.as_ref().map_or(0, |_| bytes);
        }
        if file.content.is_none() && file.handle.is_none() {
            return None;
        }
        let number = self.blocks.len() + 1;
        if let Some(handle) = &file.handle {
            let FileStorage { files, owner } = self.storage;
            self.reports.push(FileReport::Stored(StoredFileReport {
                name: file.name.clone().unwrap_or_default(),
                mime_type: file.mime_type.clone(),
                bytes: file.bytes,
                handle: handle.clone(),
                content: number,
                expires_s: files.lifetime().as_secs(),
                ends_with_client: owner.is_connection(),
            }));
        }
        self.blocks.push(file);
        Some(number)
    }

    /// Returns the number of characters that the files in the content of the answer take as base64.
    pub(super) fn base64_bytes(&self) -> usize {
        let contents = self.blocks.iter().filter_map(|file| file.content.as_ref());
        contents.map(|content| BASE64.encode_len(content.len())).sum()
    }
}

fn read(storage: FileStorage<'_>, file: &ResultFile) -> Option<Vec<u8>> {
    let (_, stored) = storage.files.open(storage.owner, file.handle.as_ref()?)?;
    let mut content = Vec::new();
    stored.take(FILE_BYTES_MAX as u64).read_to_end(&mut content).ok()?;
    Some(content)
}
