//! Converts files in the result of a run to MCP content blocks.

use data_encoding::BASE64;
use lockhouse_messages::{Media, RESULT_URI_PREFIX, ResultFile, StoredFile};
use lockhouse_protocol::ExecutionId;
use rmcp::model::{ContentBlock, Resource, ResourceContents};

/// Maximum number of characters of a file name in a resource URI. Longer names are truncated.
const NAME_CHARS_MAX: usize = 80;

/// Converts a file in the result of an execution to an MCP content block: an image, audio, a link to a stored file, or an
/// embedded resource if files are not stored.
/// `number` is the position of the file in the result, and is part of the resource's URI.
pub(super) fn content_block(execution: ExecutionId, number: usize, file: &ResultFile) -> ContentBlock {
    let media = file.media();
    let ResultFile { content, mime_type, name, bytes, handle } = file;
    let mime_type = mime_type.clone();
    let Some(content) = content else {
        let handle = handle.as_ref().map(|handle| handle.to_string()).unwrap_or_default();
        let name = name.clone().unwrap_or_else(|| "file".to_owned());
        let mut link = Resource::new(format!("{RESULT_URI_PREFIX}{handle}"), name);
        (link.mime_type, link.size) = (Some(mime_type), Some(*bytes));
        return ContentBlock::resource_link(link);
    };
    let base64 = BASE64.encode(content);
    match media {
        Media::Image => ContentBlock::image(base64, mime_type),
        Media::Audio => ContentBlock::audio(base64, mime_type),
        Media::None => {
            let name = name.as_ref().map(|name| format!("/{}", uri_segment(name))).unwrap_or_default();
            ContentBlock::resource(ResourceContents::BlobResourceContents {
                uri: format!("lockhouse://{execution}/{number}{name}"),
                mime_type: Some(mime_type),
                blob: base64,
                meta: None,
            })
        }
    }
}

/// Converts a stored file to the contents of a resource: text if it is some, and otherwise bytes as Base64.
pub(super) fn stored_file(file: StoredFile) -> ResourceContents {
    let StoredFile { handle, media_type, content } = file;
    let uri = format!("{RESULT_URI_PREFIX}{handle}");
    let is_text = media_type.starts_with("text/") || media_type == "application/json";
    let mime_type = Some(media_type);
    match String::from_utf8(content) {
        Ok(text) if is_text => ResourceContents::TextResourceContents { uri, mime_type, text, meta: None },
        Ok(text) => blob(uri, mime_type, text.as_bytes()),
        Err(error) => blob(uri, mime_type, error.as_bytes()),
    }
}

fn blob(uri: String, mime_type: Option<String>, content: &[u8]) -> ResourceContents {
    ResourceContents::BlobResourceContents { uri, mime_type, blob: BASE64.encode(content), meta: None }
}

fn uri_segment(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    name.chars().take(NAME_CHARS_MAX).map(plain).collect()
}
