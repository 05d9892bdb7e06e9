//! Tests of images, audio and files in the value of a program: they become MCP content blocks of the answer.

use lockhouse_tests::{Lockhouse, Session, Table, ensure, equal};
use serde_json::{Value, json};

/// Runs a program and returns the content blocks and the structured content of the answer.
async fn run(session: &Session, language: &str, code: &str) -> (Vec<Value>, Value) {
    let result = session.call("run_code", json!({"language": language, "code": code})).await.unwrap();
    let content = result.content.iter().map(|block| serde_json::to_value(block).unwrap()).collect();
    (content, result.structured_content.unwrap())
}

#[tokio::test]
async fn files_in_a_value_become_content_of_the_answer() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let image = json!([{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}]);
    let image_stands = json!({"content": 1, "mime_type": "image/png", "bytes": 8});
    let mut table = Table::new("files");
    for (language, code, blocks, value) in [
        (
            "python",
            "from mcp_tools import Blob\nBlob(b'\\x89PNG\\r\\n\\x1a\\n', 'image/png')",
            image.clone(),
            image_stands.clone(),
        ),
        (
            "typescript",
            "({data: new Uint8Array([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10]), mimeType: 'image/png'})",
            image.clone(),
            image_stands.clone(),
        ),
        (
            "python",
            "from mcp_tools import Blob\n{'a': [Blob(b'RIFF____WAVE', 'audio/wav')], 'b': Blob(b'y', 'application/pdf', 'report 1.pdf')}",
            json!([
                {"type": "audio", "data": "UklGRl9fX19XQVZF", "mimeType": "audio/wav"},
                {"type": "resource_link", "uri": "lockhouse://result/HANDLE", "name": "report 1.pdf", "mimeType": "application/pdf", "size": 1},
            ]),
            json!({
                "a": [{"content": 1, "mime_type": "audio/wav", "bytes": 12}],
                "b": {"content": 2, "mime_type": "application/pdf", "bytes": 1, "name": "report 1.pdf"},
            }),
        ),
        (
            "python",
            "from mcp_tools import Blob\n[Blob(b'<html>', 'image/png', 'x.png'), Blob(b'GIF89a..', 'image/png')]",
            json!([
                {"type": "resource_link", "uri": "lockhouse://result/HANDLE", "name": "x.png", "mimeType": "application/octet-stream", "size": 6},
                {"type": "image", "data": "R0lGODlhLi4=", "mimeType": "image/gif"},
            ]),
            json!([
                {"content": 1, "mime_type": "application/octet-stream", "bytes": 6, "name": "x.png"},
                {"content": 2, "mime_type": "image/gif", "bytes": 8},
            ]),
        ),
        (
            "typescript",
            "({data: new TextEncoder().encode('<html>'), mimeType: 'audio/wav'})",
            json!([{"type": "resource_link", "uri": "lockhouse://result/HANDLE", "name": "file", "mimeType": "application/octet-stream", "size": 6}]),
            json!({"content": 1, "mime_type": "application/octet-stream", "bytes": 6}),
        ),
        (
            "typescript",
            "[1, {data: new Uint8Array([120]).buffer, mimeType: 'text/csv', name: 'a.csv'}]",
            json!([{"type": "resource_link", "uri": "lockhouse://result/HANDLE", "name": "a.csv", "mimeType": "text/csv", "size": 1}]),
            json!([1, {"content": 1, "mime_type": "text/csv", "bytes": 1, "name": "a.csv"}]),
        ),
        (
            "python",
            "from mcp_tools import Blob\nBlob(b'x', 'image/png\\r\\nX: y')",
            json!([]),
            json!({"base64": "eA==", "mime_type": "image/png\r\nX: y"}),
        ),
        ("python", "b'x'", json!([]), json!({"base64": "eA=="})),
    ] {
        let (content, answer) = run(&session, language, code).await;
        let handles =
            answer["files"].as_array().into_iter().flatten().filter_map(|file| file["handle"].as_str());
        let told =
            handles.fold(json!(content[1..]).to_string(), |told, handle| told.replace(handle, "HANDLE"));
        let told: Value = serde_json::from_str(&told).unwrap();
        table.row(format!("{language}: the blocks of {code}"), equal(told, blocks));
        table.row(format!("{language}: the value of {code}"), equal(&answer["value"], &value));
        let text: Value = serde_json::from_str(content[0]["text"].as_str().unwrap()).unwrap();
        table.row(format!("{language}: the text is the structure, {code}"), equal(text, answer));
    }
    for (language, code) in
        [("python", "from mcp_tools.fixture import image\nimage()"), ("typescript", "await fixture.image()")]
    {
        let (content, answer) = run(&session, language, code).await;
        let right = content.len() == 2 && content[1]["type"] == "image" && answer["value"]["content"] == 1;
        table.row(format!("{language}: a tool's image"), ensure(right, &answer));
    }
    table.finish();
}

#[tokio::test]
async fn the_number_and_size_of_files_are_limited() {
    // If files are stored, further ones are links: see `files_in_out::returned_files`.
    let lockhouse = Lockhouse::new().config("[results]\nfiles_mib = 0\n");
    let session = lockhouse.serve().await;
    let mut table = Table::new("many files");
    for (code, shown) in [
        ("from mcp_tools import Blob\n[Blob(b'x', 'image/png')] * 12", 10),
        ("from mcp_tools import Blob\n[Blob(bytes(1_500_000), 'image/png') for _ in range(3)]", 2),
        ("from mcp_tools import Blob\n[Blob(bytes(4_500_000), 'image/png')]", 0),
    ] {
        let (content, answer) = run(&session, "python", code).await;
        let list = answer["preview"].as_array().unwrap();
        let left_out: Vec<&Value> = list.iter().filter(|file| file["content"].is_null()).collect();
        let told = left_out.iter().all(|file| file["left_out"].is_string());
        let right = content.len() == shown + 1 && left_out.len() == list.len() - shown && told;
        table.row(code, ensure(right, (content.len(), &answer["preview"])));
        table.row(
            format!("{code}: kept whole"),
            ensure(answer["truncated"]["value"]["handle"].is_string(), &answer["truncated"]),
        );
    }
    let code = "from mcp_tools import Blob\n[Blob(b'<html>', 'image/png'), Blob(b'<svg/>', 'image/svg+xml'), Blob(b'GIF89a..', 'image/png')]";
    let (content, answer) = run(&session, "python", code).await;
    let shown: Vec<(&Value, &Value)> = content[1..]
        .iter()
        .map(|block| (&block["type"], block.get("mimeType").unwrap_or(&block["resource"]["mimeType"])))
        .collect();
    let expected =
        [("resource", "application/octet-stream"), ("resource", "image/svg+xml"), ("image", "image/gif")];
    let expected = expected.map(|(kind, media_type)| (json!(kind), json!(media_type)));
    let expected: Vec<(&Value, &Value)> = expected.iter().map(|(kind, of)| (kind, of)).collect();
    table.row("only images are images", equal(shown, expected).map_err(|e| format!("{e} {answer}")));
    table.finish();
}

#[test]
fn the_text_output_names_a_file_and_the_json_output_has_its_bytes() {
    let lockhouse = Lockhouse::new();
    let code = "from mcp_tools import Blob\n{'plot': Blob(b'\\x89PNG\\r\\n\\x1a\\n' + bytes(1226), 'image/png'), 'page': Blob(b'<html>', 'image/png')}";
    let told = lockhouse.run(&["run", "--language", "python", "-c", code]);
    assert!(told.stdout.contains(r#""plot": "<image/png, 1,234 bytes>""#), "{told:?}");
    assert!(told.stdout.contains(r#""page": "<application/octet-stream, 6 bytes>""#), "{told:?}");
    let answer = lockhouse.answer("python", code);
    assert_eq!(answer["value"]["plot"]["base64"].as_str().map(str::len), Some(1648), "{answer}");
}
