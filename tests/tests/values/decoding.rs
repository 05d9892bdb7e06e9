//! Tests of tool results that are JSON text: programs get the decoded value, and the original text of the
//! server wherever text is needed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use lockhouse_tests::{Lockhouse, Table, ensure, equal, structured, wait_until};
use serde_json::{Value, json};

/// A Lockhouse test fixture with the upstream server `files`, and the directory with the files that the
/// server reads and writes.
struct Files {
    lockhouse: Lockhouse,
    directory: PathBuf,
}

impl Files {
    fn new(config: &str) -> Self {
        let lockhouse = Lockhouse::new();
        let directory = lockhouse.path("files");
        std::fs::create_dir_all(&directory).expect("a directory");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/files.py");
        let entry = json!({"command": "python3", "args": ["-B", script, directory]});
        let policy = "version = 1\n[servers.files]\nallow = [\"*\"]\n";
        Self { lockhouse: lockhouse.servers_entry("files", entry).policy(policy).config(config), directory }
    }

    fn write(&self, name: &str, content: &str) {
        std::fs::write(self.directory.join(name), content).expect("written");
    }

    fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.directory.join(name)).ok()
    }

    /// Returns the value of a program, or its error as `TYPE: MESSAGE`.
    fn value(&self, language: &str, code: &str) -> Value {
        let answer = self.lockhouse.answer(language, code);
        match answer["error"].is_null() {
            true => answer["value"].clone(),
            false => {
                let part = |name: &str| answer["error"][name].as_str().unwrap_or_default().to_owned();
                format!("{}: {}", part("type"), part("message")).into()
            }
        }
    }
}

const PYTHON: &str = "from mcp_tools import raw_text, call_tool, ToolError\nfrom mcp_tools.files import *\n";

fn program(language: &str, code: &str) -> String {
    if language == "python" { format!("{PYTHON}{code}") } else { code.to_owned() }
}

/// Returns 200 sample files, each as its name and content. They are of kinds that programs copy and edit,
/// such as JSON and YAML.
fn sample_files() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for n in 0..40 {
        let pretty = serde_json::to_string_pretty(
            &json!({"id": n, "tags": ["a", "ž"], "big": 9_007_199_254_740_993_u64}),
        );
        files.push((format!("{n}.json"), format!("{}\n", pretty.expect("JSON"))));
        files.push((
            format!("list-{n}.json"),
            format!(" [ 1.50, {n}e2, \"\\u00e9\\/\", {{ }},\r\n null ]\n\n"),
        ));
        let lines: String = (0..3).fold(String::new(), |mut lines, row| {
            let _ = writeln!(lines, "{{\"row\": {row}, \"n\": {n}}}");
            lines
        });
        files.push((format!("{n}.jsonl"), lines));
        files.push((format!("{n}.yaml"), format!("a: [1, {n}]\nb:\n  - {{c: d}}\n")));
        files.push(match n % 2 {
            0 => (format!("{n}.csv"), format!("id,name\r\n{n},\"a, b\"\r\n")),
            _ => (format!("{n}.py"), format!("[print(i) for i in range({n})]\n")),
        });
    }
    files
}

#[test]
fn files_are_copied_byte_for_byte_and_json_files_are_values() {
    let files = Files::new("");
    let samples = sample_files();
    for (name, content) in &samples {
        files.write(name, content);
    }
    let names: Vec<&str> = samples.iter().map(|(name, _)| name.as_str()).collect();
    let names = json!(names);
    let mut table = Table::new("copies of 200 files");
    for (language, code) in [
        (
            "python",
            format!(
                "{PYTHON}decoded = []\nfor name in {names}:\n  content = read_file(name)\n  \
                 if isinstance(content, (dict, list)): decoded.append(name)\n  \
                 write_file(path='python-' + name, content=content)\ndecoded"
            ),
        ),
        (
            "typescript",
            format!(
                "const decoded = [];\nfor (const name of {names}) {{\n  const content = await files.read_file(name);\n  \
                 if (typeof content === 'object') decoded.push(name);\n  \
                 await files.write_file({{ path: 'typescript-' + name, content }});\n}}\nreturn decoded"
            ),
        ),
    ] {
        let decoded = files.value(language, &code);
        let json_files = samples.iter().map(|(name, _)| name).filter(|name| name.ends_with(".json"));
        table.row(
            format!("{language}: JSON files are values"),
            equal(&decoded, &json!(json_files.collect::<Vec<_>>())),
        );
        let differing = samples
            .iter()
            .filter(|(name, content)| files.read(&format!("{language}-{name}")).as_ref() != Some(content));
        let differing: Vec<&String> = differing.map(|(name, _)| name).collect();
        table.row(format!("{language}: 200 copies are equal"), ensure(differing.is_empty(), differing));
    }
    table.finish();
}

#[test]
fn text_that_is_json_as_a_whole_is_decoded_and_other_text_is_not() {
    let files = Files::new("");
    let mut table = Table::new("text of a server → type in Python, in TypeScript");
    for (text, python, typescript) in [
        ("{\"a\": 1}", "dict", "object"),
        (" \r\n[1]\t\n", "list", "array"),
        ("null\n", "NoneType", "null"),
        ("true", "Text", "string"),
        ("12", "Text", "string"),
        ("\"a\"", "Text", "string"),
        ("{\"a\": 1} and more", "Text", "string"),
        ("{\"a\": 1}\n{\"a\": 2}", "Text", "string"),
        ("[NaN]", "Text", "string"),
        ("{'a': 1}", "Text", "string"),
        ("nullify", "Text", "string"),
        ("", "Text", "string"),
    ] {
        files.write("a", text);
        let kind = files.value("python", &program("python", "type(read_file('a')).__name__"));
        table.row(format!("python: {text:?}"), equal(&kind, &json!(python)));
        let code = "const v = await files.read_file('a');\nreturn v === null ? 'null' : Array.isArray(v) ? 'array' : typeof v";
        table.row(
            format!("typescript: {text:?}"),
            equal(&files.value("typescript", code), &json!(typescript)),
        );
    }
    table.finish();
}

#[test]
fn the_text_of_a_decoded_result_stays_available() {
    let files = Files::new("");
    let text = "{ \"name\": \"a\",  \"rows\": [1, 2.50] }\n";
    files.write("a", text);
    files.write(
        "fields",
        r#"{"text": "own", "json": 1, "toString": 2, "_text": 3, "__proto__": {"text": "no"}}"#,
    );
    let mut table = Table::new("expressions with a decoded result v");
    let python = [
        ("v['rows'][1] + len(v)", json!(4.5)),
        ("raw_text(v)", json!(text)),
        ("v.text", json!(text)),
        ("str(v)", json!(text)),
        ("f'{v}'", json!(text)),
        ("v.json() is v", json!(true)),
        ("__import__('json').loads(v) is v", json!(true)),
        ("isinstance(v, dict)", json!(true)),
        ("{**v}['name']", json!("a")),
        ("type(v | {}).__name__, str({**v}) == str(v)", json!(["dict", false])),
        ("v.update(name='b') or (str(v), raw_text(v))", json!(["{'name': 'b', 'rows': [1, 2.5]}", text])),
        ("v", json!({"name": "a", "rows": [1, 2.5]})),
        (
            "v.split(',')",
            json!(
                "AttributeError: this result was JSON text and has been decoded to a dict; use raw_text(value) for the text"
            ),
        ),
        (
            "raw_text({})",
            json!(
                "TypeError: raw_text takes a whole result of a tool that was text; for any other value use json.dumps(value)"
            ),
        ),
        ("raw_text(read_file('fields'))[:8]", json!("{\"text\":")),
        ("read_file('fields')['text']", json!("own")),
        ("hasattr(read_file('fields'), 'text')", json!(false)),
    ];
    for (expression, expected) in python {
        let code = program("python", &format!("v = read_file('a')\n{expression}"));
        table.row(format!("python: {expression}"), equal(&files.value("python", &code), &expected));
    }
    let typescript = [
        ("v.rows[1] + Object.keys(v).length", json!(4.5)),
        ("rawText(v)", json!(text)),
        ("v.text", json!(text)),
        ("String(v)", json!(text)),
        ("`${v}`", json!(text)),
        ("v.json() === v", json!(true)),
        ("JSON.parse(v) === v", json!(true)),
        ("({...v}).name", json!("a")),
        ("JSON.stringify(v)", json!("{\"name\":\"a\",\"rows\":[1,2.5]}")),
        ("(v.name = 'b', [String(v), rawText(v)])", json!(["{\"name\":\"b\",\"rows\":[1,2.5]}", text])),
        ("v", json!({"name": "a", "rows": [1, 2.5]})),
        ("structuredClone(v)", json!({"name": "a", "rows": [1, 2.5]})),
        (
            "v.split(',')",
            json!(
                "TypeError: this result was JSON text and has been decoded; use rawText(value) for the text"
            ),
        ),
        (
            "rawText({})",
            json!(
                "TypeError: rawText takes a whole result of a tool that was text; for any other value use JSON.stringify(value)"
            ),
        ),
        ("rawText(await files.read_file('fields')).slice(0, 8)", json!("{\"text\":")),
        (
            "[(await files.read_file('fields')).text, (await files.read_file('fields')).toString]",
            json!(["own", 2]),
        ),
        ("`${await files.read_file('fields')}`.slice(0, 8)", json!("{\"text\":")),
    ];
    for (expression, expected) in typescript {
        let code = format!("const v = await files.read_file('a');\nreturn {expression}");
        table.row(format!("typescript: {expression}"), equal(&files.value("typescript", &code), &expected));
    }
    table.finish();
}

#[test]
fn large_integers_lose_no_digits() {
    let files = Files::new("");
    files.write("a", r#"{"id": 9007199254740993, "small": 5, "text": "9007199254740993", "e": 1e20}"#);
    let python = files.value("python", &program("python", "str(read_file('a')['id'] + 1)"));
    assert_eq!(python, "9007199254740994");
    let typescript = "const v = await files.read_file('a');\nreturn [v.id, v.small, v['text'], v.e]";
    let digits = "9007199254740993";
    assert_eq!(files.value("typescript", typescript), json!([digits, 5, digits, 1e20]));
}

/// The text has up to 6 MB, with and without an integer of 16 digits: one long string, many strings, many numbers.
#[test]
fn large_texts_are_decoded_in_both_languages() {
    let files = Files::new("[limits]\nmemory_mib = 512\n");
    let strings = format!("\"{}\"", "x\\n".repeat(100)).repeat(10_000).replace("\"\"", "\",\"");
    let numbers = vec!["1234567"; 100_000].join(",");
    let mut table = Table::new("texts");
    for (name, rest) in [
        ("one long string", format!("\"{}\"", "x".repeat(5_000_000))),
        ("many strings", format!("[{strings}]")),
        ("many numbers", format!("[{numbers}]")),
    ] {
        for (id, expected) in [("1", json!(1)), ("9007199254740993", json!("9007199254740993"))] {
            files.write("a", &format!("{{\"id\": {id}, \"rest\": {rest}}}"));
            let python = program(
                "python",
                "v = read_file('a')\n[type(v).__name__, str(v['id']), len(v['rest']) > 999]",
            );
            let digits = expected.as_str().map_or("1", |digits| digits);
            let got = files.value("python", &python);
            table.row(format!("{name}, {id}, python"), equal(got, json!(["dict", digits, true])));
            let typescript =
                "const v = await files.read_file('a');\nreturn [typeof v, v.id, v.rest.length > 999]";
            let got = files.value("typescript", typescript);
            table.row(format!("{name}, {id}, typescript"), equal(got, json!(["object", expected, true])));
        }
    }
    table.finish();
}

#[test]
fn a_decoded_result_is_sent_as_text_only_where_the_schema_requires_it() {
    let files = Files::new("");
    let text = "{ \"urgent\": true, \"text\": \"x\" }";
    files.write("a", text);
    let written = |name: &str, arguments: Value| json!(format!("{name}: {}", python_json(&arguments)));
    let changed = |place: &str, tool: &str, function: &str| {
        json!(format!(
            "ToolError: {tool}: {place} must be a string, and is a result that was decoded from JSON text and then changed: pass {function}"
        ))
    };
    let refused = |by_name: &str, whole: &str| {
        json!(format!(
            "ToolError: note got its arguments as JSON text: pass them by name, {by_name}. If the text itself is meant: {whole}"
        ))
    };
    let mut table = Table::new("calls with a decoded result v");
    for (language, code, expected) in [
        ("python", "note(text=v)", written("note", json!({"text": text}))),
        ("python", "note(v)", written("note", json!({"text": text}))),
        ("python", "call_tool('files', 'note', v)", written("note", json!({"text": text}))),
        ("python", "call_tool('files.note', [v])", written("note", json!({"text": text}))),
        (
            "python",
            "save_settings(v)",
            written("save_settings", json!({"settings": {"urgent": true, "text": "x"}})),
        ),
        ("python", "write_files([{'path': 'b', 'content': v}]) and raw_text(read_file('b'))", json!(text)),
        ("python", "v['text'] = 'y'\nnote(v)", changed("/text", "note", "json.dumps(value)")),
        (
            "python",
            "v['text'] = 'y'\nnote(text=__import__('json').dumps(v))",
            written("note", json!({"text": "{\"urgent\": true, \"text\": \"y\"}"})),
        ),
        // Text does not name arguments either, whether it comes from a server or from the program.
        ("python", "note(raw_text(v))", refused("note(urgent=...)", "note(text=text)")),
        ("python", "note(__import__('json').dumps(v))", refused("note(urgent=...)", "note(text=text)")),
        (
            "python",
            "note(__import__('json').dumps({'other': 1}))",
            written("note", json!({"text": "{\"other\": 1}"})),
        ),
        ("typescript", "files.note('{\"other\": 1}')", written("note", json!({"text": "{\"other\": 1}"}))),
        ("python", "note(text=raw_text(v))", written("note", json!({"text": text}))),
        ("python", "call_tool('files.note', raw_text(v))", refused("note(urgent=...)", "note(text=text)")),
        (
            "python",
            "call_tool(v)",
            json!("ToolError: '{ \"urgent\": true, \"text\": \"x\" }' names no tool; write 'server.tool'"),
        ),
        (
            "python",
            "v['text'] = 'y'\nsave_settings(v)",
            written("save_settings", json!({"settings": {"urgent": true, "text": "y"}})),
        ),
        ("typescript", "files.note(v)", written("note", json!({"text": text}))),
        ("typescript", "files.note({ text: v })", written("note", json!({"text": text}))),
        ("typescript", "callTool('files', 'note', v)", written("note", json!({"text": text}))),
        ("typescript", "files.note(rawText(v))", refused("note({ urgent: ... })", "note({ text: text })")),
        ("typescript", "files.note({ text: rawText(v) })", written("note", json!({"text": text}))),
        (
            "typescript",
            "files.save_settings(v)",
            written("save_settings", json!({"settings": {"urgent": true, "text": "x"}})),
        ),
        ("typescript", "(v['text'] = 'y', files.note(v))", changed("/text", "note", "JSON.stringify(value)")),
        (
            "typescript",
            "files.write_files({ files: [{ path: 'c', content: v }] }).then(() => files.read_file('c')).then(rawText)",
            json!(text),
        ),
    ] {
        let code = match language {
            "python" => program("python", &format!("v = read_file('a')\n{code}")),
            _ => format!("const v = await files.read_file('a');\nreturn {code}"),
        };
        table.row(format!("{language}: {code}"), equal(&files.value(language, &code), &expected));
    }
    table.finish();
}

/// Formats JSON as Python's `json.dumps` does with sorted keys.
fn python_json(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| name.as_str());
            let members: Vec<String> = members
                .iter()
                .map(|(name, value)| format!("{}: {}", json!(name), python_json(value)))
                .collect();
            format!("{{{}}}", members.join(", "))
        }
        other => other.to_string(),
    }
}

#[tokio::test]
async fn observed_results_are_described_by_what_programs_get() {
    let files = Files::new("");
    files.write("rows", r#"[{"id": "a", "size": 1}, {"id": "b", "size": 2}]"#);
    let session = files.lockhouse.serve().await;
    let program =
        format!("{PYTHON}for _ in range(2):\n  read_file('rows')\n  note('hello')\n  blocks(['1', '2'])");
    let expected = [
        ("read_file", "read_file(path: str) -> list[{ id: str, size: int }]  # observed"),
        ("note", "note(text: str, urgent: bool = ...) -> str  # text, observed"),
        ("blocks", "blocks(texts: list[str]) -> list[str]  # observed"),
        ("save_settings", "save_settings(settings: dict) -> unknown"),
    ];
    wait_until("the signatures say what was observed", async || {
        assert_eq!(session.run_code("python", &program).await["status"], "ok");
        let found =
            structured(session.call("search_tools", json!({"query": "server:files", "limit": 20})).await);
        let signature = |tool: &str| {
            let rows = found["tools"].as_array().expect("rows");
            rows.iter().find(|row| row["tool"] == tool).map_or(Value::Null, |row| row["python"].clone())
        };
        expected.iter().all(|(tool, expected)| signature(tool) == *expected).then_some(())
    })
    .await;
    session.close().await;
}

#[test]
fn several_texts_are_a_list_of_what_each_one_is() {
    let files = Files::new("");
    let code = "blocks(['{\"a\": 1}', 'text', '[2]'])";
    assert_eq!(files.value("python", &program("python", code)), json!([{"a": 1}, "text", [2]]));
    let code = "return await files.blocks({ texts: ['{\"a\": 1}', 'text', '[2]'] })";
    assert_eq!(files.value("typescript", code), json!([{"a": 1}, "text", [2]]));
}

#[test]
fn the_configuration_decides_for_servers_and_tools() {
    let mut table = Table::new("configuration → types of read_file, of blocks with one text");
    for (config, read, blocks) in [
        ("", "dict", "dict"),
        ("[tools]\ndecode = { files = \"text\" }\n", "Text", "Text"),
        ("[tools]\ndecode = { \"files.read_*\" = \"text\" }\n", "Text", "dict"),
        ("[tools]\ndecode = { files = \"text\", \"files.blocks\" = \"list\" }\n", "Text", "list"),
        (
            "[tools]\ndecode = { files = \"json\", \"files.r*\" = \"text\", \"files.read_*\" = \"list\" }\n",
            "list",
            "dict",
        ),
    ] {
        let files = Files::new(config);
        files.write("a", "{\"a\": 1}");
        let code = "[type(read_file('a')).__name__, type(blocks(['{}'])).__name__]";
        table.row(config, equal(&files.value("python", &program("python", code)), &json!([read, blocks])));
    }
    table.finish();
}
