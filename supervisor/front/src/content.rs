//! Files of a value, as the content of a tool's answer.

use lockhouse_messages::File;
use lockhouse_protocol::ExecutionId;
use rmcp::model::{ContentBlock, ResourceContents};

/// Characters of a file's name in its URI.
const NAME_CHARS_MAX: usize = 80;

/// The block with this number in the answer of an execution: an image, a sound, or else a resource with its bytes.
pub(super) fn block(execution: ExecutionId, number: usize, file: File) -> ContentBlock {
    let File { base64, mime_type, name } = file;
    match mime_type.split('/').next() {
        Some("image") => ContentBlock::image(base64, mime_type),
        Some("audio") => ContentBlock::audio(base64, mime_type),
        _ => {
            let name = name.map(|name| format!("/{}", in_a_uri(&name))).unwrap_or_default();
            ContentBlock::resource(ResourceContents::BlobResourceContents {
                uri: format!("lockhouse://{execution}/{number}{name}"),
                mime_type: Some(mime_type),
                blob: base64,
                meta: None,
            })
        }
    }
}

fn in_a_uri(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    name.chars().take(NAME_CHARS_MAX).map(plain).collect()
}
