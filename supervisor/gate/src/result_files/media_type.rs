//! The media types of returned files, by their extensions.

/// The media type of a file whose extension is not in the table.
const UNKNOWN: &str = "application/octet-stream";

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
