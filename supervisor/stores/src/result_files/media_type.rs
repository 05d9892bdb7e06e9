//! The media types of returned files: by their extensions, and for images and sounds by their first bytes.

/// The media type of a file of which nothing more is known.
pub const UNKNOWN: &str = "application/octet-stream";
/// The media type of SVG images, which are text. Answers never contain them as images.
const SVG: &str = "image/svg+xml";
/// Number of bytes at the beginning of a file that tell its kind.
pub const HEAD_BYTES: usize = 16;

const TYPES: [(&str, &str); 34] = [
    ("avif", "image/avif"),
    ("bmp", "image/bmp"),
    ("csv", "text/csv"),
    ("db", "application/vnd.sqlite3"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("flac", "audio/flac"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("ics", "text/calendar"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("md", "text/markdown"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("ogg", "audio/ogg"),
    ("parquet", "application/vnd.apache.parquet"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("sqlite", "application/vnd.sqlite3"),
    ("svg", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("tsv", "text/tab-separated-values"),
    ("txt", "text/plain"),
    ("wav", "audio/wav"),
    ("webp", "image/webp"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("zip", "application/zip"),
];

/// Returns the media type for the extension of a file name, in either case.
pub fn media_type(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let found = extension.and_then(|extension| TYPES.iter().find(|(known, _)| *known == extension));
    found.map_or(UNKNOWN, |(_, media_type)| media_type)
}

/// Returns the media type of a file that is claimed to have the type `claimed` and begins with the bytes `head`. A claim of
/// an image or a sound is true only if the bytes are one: their type replaces it, or else [`UNKNOWN`]. Clients display and
/// play such files, so no name and no program may decide what they are.
pub fn checked(claimed: String, head: &[u8]) -> String {
    let kind = claimed.split('/').next().unwrap_or_default();
    let claims_media = kind.eq_ignore_ascii_case("image") || kind.eq_ignore_ascii_case("audio");
    match claims_media && !claimed.eq_ignore_ascii_case(SVG) {
        true => type_of_bytes(head).unwrap_or(UNKNOWN).to_owned(),
        false => claimed,
    }
}

/// Returns the type of an image or a sound by its first bytes; `None` for other files.
fn type_of_bytes(head: &[u8]) -> Option<&'static str> {
    let inner = |at: usize| head.get(at..at + 4).unwrap_or_default();
    Some(match head {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', ..] if inner(8) == b"WEBP" => "image/webp",
        [b'R', b'I', b'F', b'F', ..] if inner(8) == b"WAVE" => "audio/wav",
        [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => "image/bmp",
        [b'I', b'I', b'*', 0, ..] | [b'M', b'M', 0, b'*', ..] => "image/tiff",
        [0, 0, 1, 0, _, 0, ..] => "image/x-icon",
        [0, 0, 0, ..] if inner(4) == b"ftyp" => match inner(8) {
            b"avif" | b"avis" => "image/avif",
            b"M4A " => "audio/mp4",
            _ => return None,
        },
        [b'f', b'L', b'a', b'C', ..] => "audio/flac",
        [b'O', b'g', b'g', b'S', 0, ..] => "audio/ogg",
        [b'I', b'D', b'3', 2..=4, ..] | [0xff, 0xe2..=0xe7 | 0xf2..=0xf7 | 0xfa..=0xff, ..] => "audio/mpeg",
        [0xff, 0xf0 | 0xf1 | 0xf8 | 0xf9, ..] => "audio/aac",
        _ => return None,
    })
}

/// Returns a name for a file of this media type that has none.
pub fn default_name(media_type: &str) -> String {
    let kind = media_type.split('/').next().filter(|kind| matches!(*kind, "image" | "audio" | "video"));
    let stem = kind.unwrap_or("file");
    let found = TYPES.iter().find(|(_, known)| *known == media_type);
    found.map_or_else(|| stem.to_owned(), |(extension, _)| format!("{stem}.{extension}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_and_sounds_are_told_by_their_bytes() {
        const HTML: &[u8] = b"<html><script>";
        for (claimed, head, expected) in [
            ("image/png", &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], "image/png"),
            ("image/png", b"\xff\xd8\xff\xe0", "image/jpeg"),
            ("image/jpeg", b"GIF89a", "image/gif"),
            ("image/webp", b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
            ("audio/x-wav", b"RIFF\x10\0\0\0WAVEfmt ", "audio/wav"),
            ("image/avif", b"\0\0\0\x20ftypavif", "image/avif"),
            ("image/bmp", b"BM\x46\0\0\0\0\0\0\0", "image/bmp"),
            ("audio/mpeg", b"ID3\x04\0", "audio/mpeg"),
            ("audio/mpeg", b"\xff\xfb\x90\0", "audio/mpeg"),
            ("audio/ogg", b"OggS\0\x02", "audio/ogg"),
            ("audio/flac", b"fLaC\0", "audio/flac"),
            ("image/png", b"\x89PNG", UNKNOWN),
            ("image/png", b"GIF8", UNKNOWN),
            ("image/webp", b"RIFF", UNKNOWN),
            ("image/bmp", b"BM <html>", UNKNOWN),
            ("image/png", b"", UNKNOWN),
            ("image/png", HTML, UNKNOWN),
            ("IMAGE/png", HTML, UNKNOWN),
            ("image/unheard-of", HTML, UNKNOWN),
            ("audio/wav", HTML, UNKNOWN),
            (SVG, b"<svg", SVG),
            ("text/html", HTML, "text/html"),
            ("text/csv", b"GIF89a", "text/csv"),
        ] {
            assert_eq!(checked(claimed.into(), head), expected, "{claimed} {head:?}");
        }
    }

    #[test]
    fn the_extension_decides() {
        for (name, expected) in
            [("a.PNG", "image/png"), ("a.b.xlsx", TYPES[30].1), ("png", UNKNOWN), ("a.exe", UNKNOWN)]
        {
            assert_eq!(media_type(name), expected, "{name}");
        }
        assert!(TYPES.is_sorted());
        let names = ["image/png", "text/csv", "a/b"].map(default_name);
        assert_eq!(names, ["image.png", "file.csv", "file"]);
    }
}
