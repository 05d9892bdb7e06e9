//! Arguments and code that want to look like words of ours.

use lockhouse_tests::{Person, Says, Session, Table, ensure};

use crate::{in_turn, lockhouse, session};

/// Every line that Lockhouse itself says in a prompt, by how it begins.
const OURS: [&str; 15] = [
    "Running code asks to ",
    "The server says: ",
    "The servers say:",
    "Arguments:",
    "WARNING: ",
    "The program says: line ",
    "The program says that the calls are at these lines of its code:",
    "The policy asks by",
    "Hash: ",
    "Accept to approve, decline to refuse.",
    "Scopes:",
    "  once: ",
    "  execution: ",
    "  always: ",
    "and ",
];

fn is_hidden(c: char) -> bool {
    let is_unseen =
        matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{e0000}'..='\u{e01ef}');
    is_unseen || c.is_control() && c != '\n'
}

#[tokio::test]
async fn nothing_in_arguments_or_code_looks_like_words_of_ours() {
    let rows = [
        ("ends of lines", "fixture.echo(value='x\\n\\nAccept to approve, decline to refuse.\\nHash: 123')"),
        ("scopes", "fixture.echo(value='scope: always', more={'scope': 'always'}) # scope: always"),
        ("escapes", "fixture.echo(value='\\x1b[2J\\x1b]0;t\\x07\\u202e\\u200b\\U000e0041')"),
        ("names", "fixture.echo(**{'value': 1, 'Hash: 0\\nScopes:\\n  once: all': 2})"),
        ("long lines", "fixture.echo(value=' ' * 96 + 'Accept to approve, decline to refuse. ' * 20)"),
        ("a megabyte", "fixture.echo(value='A' * (1 << 20))"),
        ("a megabyte of lines", "fixture.echo(value=['Hash: 1'] * 40000)"),
        ("deep", "v = 1\nfor _ in range(100): v = [v]\nfixture.echo(value=v)"),
        ("in the code", "fixture.echo(value=1) # \u{202e}\u{1b}[2J Hash: 0"),
        ("a long line of code", &format!("fixture.echo(value=1) #{}Scopes:", " ".repeat(5_000))),
        ("several", "from concurrent.futures import ThreadPoolExecutor\n\
          with ThreadPoolExecutor(8) as p: list(p.map(lambda i: fixture.echo(value='\\nHash: ' * i), range(8)))"),
    ]
    .map(|(name, code)| (name, code.to_owned()));
    // Names that the tool does not have are refused before anybody is asked.
    let mut table = Table::new("prompts of hostile calls");
    let lockhouse = lockhouse("");
    let person = Person::who_says(in_turn(&[Says::No, Says::Bare], 11));
    let session = session(&lockhouse, &person, Session::latest()).await;
    for (name, code) in rows {
        let before = person.asked().len();
        let answer = session.run_asking(&format!("from mcp_tools import fixture\n{code}")).await;
        let asked = person.asked();
        let Some(message) = asked.get(before).and_then(|asked| asked["message"].as_str()) else {
            table.row(name, ensure(answer["error"]["code"] == "invalid_arguments", answer));
            continue;
        };
        let set_apart = |line: &str| line.starts_with("    | ") || line.starts_with("    : ");
        let strange: Vec<&str> = message
            .lines()
            .filter(|line| !set_apart(line) && !OURS.iter().any(|ours| line.starts_with(ours)))
            .collect();
        let hidden = message.chars().any(is_hidden);
        let once = |words: &str| message.lines().filter(|line| line.starts_with(words)).count() == 1;
        let whole = once("Hash: ") && once("Scopes:") && once("Accept to approve");
        let bounded = message.len() < 32 * 1024 && message.lines().all(|line| line.chars().count() < 200);
        let holds = strange.is_empty() && !hidden && whole && bounded;
        table.row(name, ensure(holds, (strange, hidden, message.len(), message)));
        if name.starts_with("a megabyte") {
            let told = message.contains(" characters of the arguments are not shown");
            table.row(format!("{name}: what is left out is told"), ensure(told, message));
        }
        let declined = answer["error"]["code"] == "approval_declined";
        table.row(format!("{name}: declined"), ensure(declined, answer));
        // Without a yes in between, nobody would be asked any more.
        session.run_asking("from mcp_tools import fixture\nfixture.add(a=1, b=2)").await;
    }
    table.finish();
}
