//! Tests of the arguments in an approval prompt: the prompt shows all arguments that matter for the decision, whatever
//! order, length, number and names of arguments a program chooses.

use std::path::Path;

use lockhouse_tests::{ClientUser, Lockhouse, Session, Table, UserReply, ensure, equal};
use serde_json::{Map, Value, json};

use crate::approvals::repeated_sequence;

fn tool(name: &str, required: &[&str], properties: &[&str], is_open: bool) -> Value {
    let properties: Map<String, Value> =
        properties.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
    json!({"name": name, "inputSchema": {
        "type": "object", "required": required, "properties": properties, "additionalProperties": is_open,
    }})
}

/// Returns the definition of a tool whose only argument is the object `params`. The object has the members
/// `properties`, of which `required` are mandatory, and permits additional members.
fn wrapped(name: &str, required: &[&str], properties: &[&str]) -> Value {
    let mut inner = tool(name, required, properties, true)["inputSchema"].take();
    let members = std::mem::take(&mut inner["properties"]);
    let schema = json!({
        "type": "object", "required": ["params"], "properties": {"params": {"$ref": "#/$defs/Params"}},
        "$defs": {"Params": {"type": "object", "required": inner["required"], "properties": members}},
    });
    json!({"name": name, "inputSchema": schema})
}

/// Returns a Lockhouse test fixture with an upstream server whose tools have many arguments. All calls of these tools
/// require approval.
fn lockhouse() -> Lockhouse {
    let lockhouse = Lockhouse::new().policy("version = 1\n[servers.scripted]\nask = [\"*\"]\n");
    let many: Vec<String> = (0..300).map(|number| format!("part_{number:03}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let tools = [
        tool("write_file", &["path"], &["note", "mode", "path"], false),
        tool("annotate", &["path"], &["path"], true),
        tool("assemble", &many, &many, false),
        wrapped("wrap", &["path"], &["note", "path"]),
        wrapped("wrap_many", &many, &many),
    ];
    let tools = lockhouse.file("scripted/tools.json", json!(tools).to_string());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/scripted.py");
    let arguments = json!([script, tools.parent().unwrap()]);
    lockhouse.config(&format!("[servers.scripted]\ncommand = \"python3\"\nargs = {arguments}\n"))
}

/// Runs a Python program, which can call tools with `call(tool, arguments)`. Returns the approval prompts that the user
/// saw, and the answer of the run.
async fn prompts(session: &Session, person: &ClientUser, code: &str) -> (Vec<String>, Value) {
    let before = person.received_requests().len();
    let code = format!(
        "from mcp_tools import call_tool, ToolError\ndef call(tool, arguments):\n  \
         try: return call_tool('scripted', tool, arguments)\n  except ToolError as e: return [e.code, str(e)]\n{code}"
    );
    let answer = session.run_asking(&code).await;
    let requests = person.received_requests().split_off(before);
    let text = |request: &Value| request["message"].as_str().unwrap_or_default().to_owned();
    (requests.iter().map(text).collect(), answer)
}

#[tokio::test]
async fn a_long_argument_hides_no_other_argument_in_any_position() {
    let lockhouse = lockhouse();
    let person = ClientUser::replying(repeated_sequence(&[UserReply::Decline, UserReply::AcceptEmpty], 10));
    let session = Session::connect_as(person.clone(), lockhouse.command(&["serve"]), Session::latest()).await;
    let mut table = Table::new("prompts of calls with one long argument");
    let rows = [
        ("before the relevant argument", "{'note': 'n' * 100000, 'mode': 'rw', 'path': '/etc/passwd'}"),
        ("after the relevant argument", "{'path': '/etc/passwd', 'mode': 'rw', 'note': 'n' * 100000}"),
        (
            "a deeply nested argument",
            "{'note': {'b': 'n' * 50000, 'a': ['n' * 50000]}, 'mode': 'rw', 'path': '/etc/passwd'}",
        ),
        ("a long list", "{'note': ['n'] * 20000, 'mode': 'rw', 'path': '/etc/passwd'}"),
        ("unseen characters", "{'note': '\\u200b' * 20000, 'mode': 'rw', 'path': '/etc/passwd'}"),
    ];
    for (name, arguments) in rows {
        let (shown_prompts, _) =
            prompts(&session, &person, &format!("call('write_file', {arguments})")).await;
        let [text] = &shown_prompts[..] else { panic!("{name}: {shown_prompts:?}") };
        let lines: Vec<&str> = text.lines().collect();
        let first = "Running code asks to call scripted.write_file with 3 arguments. INCOMPLETE: not everything fits below.";
        table.row(format!("{name}: the first line"), equal(lines[0], first));
        let second = text.replace("\n    : ", "").lines().nth(1).unwrap_or_default().to_owned();
        let shares = second.starts_with("    | \"path\": \"/etc/passwd\", \"note\": ")
            && second.ends_with(", \"mode\": \"rw\"")
            && second.chars().count() < 400;
        table.row(format!("{name}: the second line"), ensure(shares, second));
        for whole in ["    | \"path\": \"/etc/passwd\"\n", "    | \"mode\": \"rw\"\n"] {
            table.row(format!("{name}: {whole:?}"), ensure(text.contains(whole), text));
        }
        let warned =
            text.contains("characters of the arguments are not shown. An answer counts for all of them.");
        table.row(format!("{name}: the omission is reported"), ensure(warned && text.len() < 16_000, text));
        prompts(&session, &person, "call('write_file', {'path': 'x'})").await;
    }
    let (shown_prompts, _) =
        prompts(&session, &person, "call('write_file', {'note': 'n', 'path': '/tmp/x'})").await;
    let whole = shown_prompts[0].contains("with 2 arguments.\n    | \"path\": \"/tmp/x\", \"note\": \"n\"\n")
        && shown_prompts[0]
            .contains("    | {\n    |   \"path\": \"/tmp/x\",\n    |   \"note\": \"n\"\n    | }\n");
    table.row("control: arguments that fit are one JSON object, in order", ensure(whole, &shown_prompts));
    table.finish();
}

#[tokio::test]
async fn a_prompt_shows_the_beginning_the_end_and_the_length_of_a_long_text() {
    let lockhouse = lockhouse();
    let person = ClientUser::replying(UserReply::Decline);
    let session = Session::connect_as(person.clone(), lockhouse.command(&["serve"]), Session::latest()).await;
    let code = "call('write_file', {'note': 'begins ' + 'n' * 9000 + ' rm -rf /', 'path': '/tmp/x'})";
    let (shown_prompts, _) = prompts(&session, &person, code).await;
    // The prompt without its continuation-line markers.
    let text = shown_prompts[0].replace("\n    : ", "");
    for words in ["\"note\": \"begins nnn", "nnn rm -rf /\" (9016 characters, the first "] {
        assert!(text.contains(words), "{words:?} is not in {text}");
    }
}

#[tokio::test]
async fn unknown_argument_names_hide_no_declared_argument() {
    let lockhouse = lockhouse();
    let person = ClientUser::replying(UserReply::Decline);
    let session = Session::connect_as(person.clone(), lockhouse.command(&["serve"]), Session::latest()).await;
    let code = "call('annotate', {**{f'a{i}': 'x' * 500 for i in range(1000)}, 'path': '/etc/passwd'})";
    let (shown_prompts, _) = prompts(&session, &person, code).await;
    let text = &shown_prompts[0];
    let first = "Running code asks to call scripted.annotate with 1001 arguments. INCOMPLETE: ";
    let second = text.lines().nth(1).unwrap_or_default();
    assert!(text.starts_with(first) && second.starts_with("    | \"path\", \"a0\", "), "{text}");
    assert!(text.contains("    | \"path\": \"/etc/passwd\"\n"), "{text}");
    assert!(text.contains(" more arguments, all of them optional, are not shown.\n"), "{text}");
}

#[tokio::test]
async fn long_values_of_unknown_arguments_take_no_space_from_required_arguments() {
    let lockhouse = lockhouse();
    let person = ClientUser::replying(UserReply::Decline);
    let session = Session::connect_as(person.clone(), lockhouse.command(&["serve"]), Session::latest()).await;
    let path = format!("/etc/{}", "p".repeat(56));
    let code =
        format!("call('annotate', {{**{{f'a{{i}}': 'x' * 4000 for i in range(100)}}, 'path': '{path}'}})");
    let (shown_prompts, _) = prompts(&session, &person, &code).await;
    let text = shown_prompts[0].replace("\n    : ", "");
    assert!(text.contains(&format!("    | \"path\": \"{path}\"\n")), "{text}");
    assert!(text.contains("INCOMPLETE") && text.contains("    | \"a0\": \"x"), "{text}");
}

#[tokio::test]
async fn a_call_with_too_many_required_arguments_to_show_is_declined_without_asking() {
    let lockhouse = lockhouse();
    let person = ClientUser::replying(UserReply::AcceptEmpty);
    let session = Session::connect_as(person.clone(), lockhouse.command(&["serve"]), Session::latest()).await;
    let code = "call('assemble', {f'part_{i:03}': 1 for i in range(300)})";
    let (shown_prompts, answer) = prompts(&session, &person, code).await;
    let reported = answer["value"][1].as_str().unwrap_or_default();
    assert!(
        shown_prompts.is_empty() && answer["value"][0] == "approval_declined",
        "{shown_prompts:?} {answer}"
    );
    let words = "cannot be shown in full to a person: ";
    assert!(
        reported.contains(words) && reported.contains("of its 300 arguments would be hidden"),
        "{answer}"
    );
    let outcomes = crate::approvals::outcomes(&lockhouse);
    assert_eq!(outcomes, ["cannot be shown"]);
    let (shown_prompts, _) = prompts(&session, &person, "call('annotate', {'path': 'x'})").await;
    assert_eq!(shown_prompts.len(), 1, "control: another tool of the server");
}

#[tokio::test]
async fn unknown_members_of_an_object_hide_no_declared_member() {
    let lockhouse = lockhouse();
    let person = ClientUser::replying(UserReply::Decline);
    let session = Session::connect_as(person.clone(), lockhouse.command(&["serve"]), Session::latest()).await;
    let added = "**{f'a{i:03}': 'x' * 200 for i in range(150)}";
    let code = format!("call('wrap', {{'params': {{{added}, 'note': 'n', 'path': '/etc/passwd'}}}})");
    let (shown_prompts, _) = prompts(&session, &person, &code).await;
    let text = &shown_prompts[0];
    let members = "    | \"params\": an object of 152 members:\n    |   \"path\": \"/etc/passwd\"\n    |   \"note\": \"n\"\n    |   \"a000\": \"x";
    assert!(text.contains(members) && text.contains("INCOMPLETE"), "{text}");
}

#[tokio::test]
async fn a_call_with_too_many_required_members_to_show_is_declined_without_asking() {
    let lockhouse = lockhouse();
    let person = ClientUser::replying(UserReply::Decline);
    let session = Session::connect_as(person.clone(), lockhouse.command(&["serve"]), Session::latest()).await;
    let code = "call('wrap_many', {'params': {f'part_{i:03}': 'x' * 20 for i in range(300)}})";
    let (shown_prompts, answer) = prompts(&session, &person, code).await;
    let reported = answer["value"][1].as_str().unwrap_or_default();
    let says = reported.contains("cannot be shown in full")
        && reported.contains("required members of its arguments would be hidden");
    assert!(shown_prompts.is_empty() && says, "{shown_prompts:?} {answer}");
    let code = "call('wrap', {'params': {'path': 'p' * 9000}})";
    let (shown_prompts, _) = prompts(&session, &person, code).await;
    assert_eq!(shown_prompts.len(), 1, "control: a long member that is named");
}

#[tokio::test]
async fn concurrent_calls_show_as_much_as_a_single_call_and_long_calls_get_their_own_prompt() {
    let lockhouse = lockhouse();
    let person = ClientUser::replying(UserReply::AcceptEmpty);
    let session = Session::connect_as(person.clone(), lockhouse.command(&["serve"]), Session::latest()).await;
    let together = |first: &str, second: &str| {
        format!(
            "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(2) as pool:\n  \
             r = list(pool.map(lambda a: call('write_file', a), [{first}, {second}]))\nlen(r)"
        )
    };
    let mut table = Table::new("two calls at once");
    let code = together("{'note': 'n' * 5000, 'path': '/etc/' + 'p' * 500}", "{'path': '/tmp/second'}");
    let (shown_prompts, answer) = prompts(&session, &person, &code).await;
    let text = shown_prompts[0].replace("\n    : ", "");
    table.row("one question", equal(shown_prompts.len(), 1));
    table.row("both calls", equal(&answer["value"], &json!(2)));
    let first = "Running code asks to make 2 calls: 2 × scripted.write_file. INCOMPLETE: not everything fits below.\n";
    table.row("the first line", ensure(text.starts_with(first), &text));
    let path = format!("\"path\": \"/etc/{}\"\n", "p".repeat(500));
    table.row("the path of the first", ensure(text.contains(&path), &text));
    table.row("its names", ensure(text.contains("  \"path\", \"note\"\n"), &text));
    table.row("much of its note", ensure(text.contains(&"n".repeat(1_000)), &text));
    table.row("the path of the second", ensure(text.contains("{\"path\":\"/tmp/second\"}"), &text));
    let code = together("{'path': '/etc/' + 'p' * 3000}", "{'path': '/tmp/second'}");
    let (shown_prompts, answer) = prompts(&session, &person, &code).await;
    table.row("both calls again", equal(&answer["value"], &json!(2)));
    let alone =
        shown_prompts.len() == 2 && shown_prompts.iter().all(|text| text.contains("with 1 argument.\n"));
    table.row("a long path has a prompt of its own and is complete", ensure(alone, &shown_prompts));
    table.finish();
}
