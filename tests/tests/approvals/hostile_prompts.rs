//! Tests of approval prompts for hostile programs, whose arguments or code imitate the lines that Lockhouse itself
//! writes into a prompt.

use lockhouse_tests::{ClientUser, Session, Table, UserReply, ensure};

use crate::approvals::{lockhouse, repeated_sequence, session};

/// The beginnings of all lines that Lockhouse itself writes into an approval prompt.
const LOCKHOUSE_LINES: [&str; 15] = [
    "Running code asks to ",
    "The server says: ",
    "The servers say:",
    "Arguments:",
    "WARNING: ",
    "The program says: line ",
    "The program says that the calls are at these lines of its code, whose comments may be wrong:",
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
async fn arguments_and_code_cannot_imitate_text_of_lockhouse_in_a_prompt() {
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
    // Calls with unknown argument names fail validation before anybody is asked.
    let mut table = Table::new("prompts of hostile calls");
    let lockhouse = lockhouse("");
    let person = ClientUser::replying(repeated_sequence(&[UserReply::Decline, UserReply::AcceptEmpty], 11));
    let session = session(&lockhouse, &person, Session::latest()).await;
    for (name, code) in rows {
        let before = person.received_requests().len();
        let answer = session.run_asking(&format!("from mcp_tools import fixture\n{code}")).await;
        let asked = person.received_requests();
        let Some(message) = asked.get(before).and_then(|asked| asked["message"].as_str()) else {
            table.row(name, ensure(answer["error"]["code"] == "invalid_arguments", answer));
            continue;
        };
        let set_apart = |line: &str| line.starts_with("    | ") || line.starts_with("    : ");
        let strange: Vec<&str> = message
            .lines()
            .filter(|line| !set_apart(line) && !LOCKHOUSE_LINES.iter().any(|ours| line.starts_with(ours)))
            .collect();
        let hidden = message.chars().any(is_hidden);
        let once = |words: &str| message.lines().filter(|line| line.starts_with(words)).count() == 1;
        let whole = once("Hash: ") && once("Scopes:") && once("Accept to approve");
        let bounded = message.len() < 32 * 1024 && message.lines().all(|line| line.chars().count() < 200);
        let holds = strange.is_empty() && !hidden && whole && bounded;
        table.row(name, ensure(holds, (strange, hidden, message.len(), message)));
        if name.starts_with("a megabyte") {
            let told = message.contains(" characters of the arguments are not shown");
            table.row(format!("{name}: the omission is reported"), ensure(told, message));
        }
        let declined = answer["error"]["code"] == "approval_declined";
        table.row(format!("{name}: declined"), ensure(declined, answer));
        // An approval in between resets the count of refusals; otherwise no more questions would be asked.
        session.run_asking("from mcp_tools import fixture\nfixture.add(a=1, b=2)").await;
    }
    table.finish();
}
