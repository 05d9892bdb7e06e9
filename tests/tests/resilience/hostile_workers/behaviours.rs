//! The behaviours of hostile workers, each with the one answer that its execution must get.

use serde_json::{Value, json};

/// A behaviour of a hostile worker, and the expected properties of its execution's answer.
pub(super) struct Row {
    pub(super) behaviour: &'static str,
    pub(super) status: &'static str,
    told: ExpectedContent,
    pub(super) timeout_s: Option<f64>,
}

enum ExpectedContent {
    /// The answer has this value.
    Value(Value),
    /// The answer's value is truncated, and its JSON text starts with this text.
    Beginning(&'static str),
    /// The answer's error message contains this text.
    Words(&'static str),
    /// The answer's error was written by the hostile worker, so only its length is checked.
    Bounded,
}

/// An upper bound for the length, in characters, of an error's message, traceback or hint. Lockhouse truncates each of
/// them to 4,000 bytes.
const TEXT_CHARS_MAX: usize = 4_001;
const NAME_CHARS_MAX: usize = 201;

impl Row {
    /// Checks that the answer of an execution has the expected properties.
    ///
    /// # Errors
    /// Returns what is wrong with the answer.
    pub(super) fn check(&self, answer: &Value) -> Result<(), String> {
        let brief: String = answer.to_string().chars().take(600).collect();
        let error = &answer["error"];
        let message = error["message"].as_str();
        let told = match &self.told {
            ExpectedContent::Value(value) => &answer["value"] == value && error.is_null(),
            ExpectedContent::Beginning(text) => {
                let shown = answer["preview"].to_string();
                shown.starts_with(text) && answer["truncated"]["value"]["bytes"].is_u64() && error.is_null()
            }
            ExpectedContent::Words(words) => message.is_some_and(|message| message.contains(words)),
            ExpectedContent::Bounded => message.is_some(),
        };
        let chars = |name: &str| error[name].as_str().map_or(0, |text| text.chars().count());
        let bounded = ["message", "traceback", "hint"].iter().all(|name| chars(name) <= TEXT_CHARS_MAX)
            && ["type", "code"].iter().all(|name| chars(name) <= NAME_CHARS_MAX);
        match told && bounded && answer["status"] == self.status {
            true => Ok(()),
            false => Err(brief),
        }
    }
}

fn ok(behaviour: &'static str, value: Value) -> Row {
    Row { behaviour, status: "ok", told: ExpectedContent::Value(value), timeout_s: None }
}

fn truncated(behaviour: &'static str, beginning: &'static str) -> Row {
    Row { behaviour, status: "ok", told: ExpectedContent::Beginning(beginning), timeout_s: None }
}

fn error(behaviour: &'static str, words: &'static str) -> Row {
    Row { behaviour, status: "error", told: ExpectedContent::Words(words), timeout_s: None }
}

fn limit(behaviour: &'static str, words: &'static str) -> Row {
    Row { behaviour, status: "limit", told: ExpectedContent::Words(words), timeout_s: None }
}

fn killed(behaviour: &'static str, words: &'static str) -> Row {
    Row { behaviour, status: "killed", told: ExpectedContent::Words(words), timeout_s: None }
}

/// Returns the row of a behaviour that never ends by itself. Its run has a timeout of 0.5 s, and must end with it.
fn timeout(behaviour: &'static str) -> Row {
    Row {
        behaviour,
        status: "timeout",
        told: ExpectedContent::Words("did not end within 0.5 s"),
        timeout_s: Some(0.5),
    }
}

fn bounded(behaviour: &'static str) -> Row {
    Row { behaviour, status: "error", told: ExpectedContent::Bounded, timeout_s: None }
}

/// Returns the rows of all behaviours. They expect the limits of the configuration in `hostile_workers.rs`.
pub(super) fn all() -> Vec<Row> {
    let mut rows = vec![ok("well", json!(42)), ok("well for a while", json!(20))];
    rows.extend(frames());
    rows.extend(floods());
    rows.extend(misplaced_messages());
    rows.extend(requests());
    rows.extend(ends());
    rows.extend(outcomes());
    rows
}

fn frames() -> Vec<Row> {
    vec![
        killed("length of 2^32-1", "4294967295 bytes exceeds the limit of 8454144 bytes"),
        killed("length of the limit and one", "8454145 bytes exceeds the limit of 8454144 bytes"),
        killed("length of 2^31, in pieces", "2147483648 bytes exceeds the limit of 8454144 bytes"),
        killed("length of 0", "not a valid message"),
        timeout("a frame never finished"),
        timeout("a large frame never finished"),
        killed("half a frame and the end", "exited with status 0"),
        timeout("slow bytes"),
        killed("a value of 100 MB", "100000017 bytes exceeds the limit"),
        killed("random bytes", "exceeds the limit"),
        killed("random bytes in a frame", "not a valid message"),
        killed("text that is not UTF-8", "not a valid message"),
        killed("text longer than its frame", "not a valid message"),
        killed("a server name with a space", "a b"),
        killed("a server name of a megabyte", "is not valid"),
        killed("a server name that is empty", "is not valid"),
        killed("a reply of its own", "not a valid message"),
        killed("a job of its own", "broke the protocol"),
    ]
}

fn floods() -> Vec<Row> {
    vec![
        limit("a flood of output", "output limit of 64 KiB reached"),
        killed("a flood of output that is empty", "an empty piece of output"),
        limit("a flood of output of one byte", "output limit of 64 KiB reached"),
        killed("a flood of requests", "more than 8 requests in flight"),
        limit("a flood of calls that are answered", "tool call limit of 50 reached"),
        limit("a flood of lookups", "limit of 1000 questions about tools reached"),
        timeout("large replies, never read"),
        timeout("lookups, never read"),
    ]
}

fn misplaced_messages() -> Vec<Row> {
    vec![
        killed("an id twice", "it used call id 1, which is not larger than its last one"),
        killed("ids that decrease", "it used call id 3, which is not larger than its last one"),
        killed("an id of 0", "it used call id 0, which is not larger than its last one"),
        killed("ready again", "it sent Ready while running"),
        killed("refused in mid-run", "it sent Refused while running"),
        ok("done twice", json!(1)),
        ok("a request after the end", json!(1)),
        ok("ready after the end", json!(1)),
        ok("a request twice after the end", json!(1)),
        ok("a flood after the end", json!(1)),
        ok("exits after the end", json!(1)),
        ok("output after the end", json!(1)),
        ok("garbage after the end", json!(1)),
    ]
}

fn requests() -> Vec<Row> {
    let invalid = |behaviour| ok(behaviour, json!("invalid_arguments"));
    vec![
        invalid("arguments nested too deeply"),
        invalid("an argument nested too deeply"),
        invalid("arguments with a lone surrogate"),
        invalid("arguments that are not UTF-8"),
        invalid("arguments with NaN"),
        invalid("arguments with an endless number"),
        invalid("arguments that are empty"),
        ok("arguments of 8 MB", json!("answered")),
        invalid("arguments of a million values"),
        invalid("the same name a million times"),
        ok("a search of 8 MB", json!("answered")),
        ok("a server that is not there", json!("unknown_tool")),
        ok("a tool with a path for a name", json!("unknown_tool")),
    ]
}

fn ends() -> Vec<Row> {
    vec![
        ok("half-close", json!("EPERM")),
        killed("close and spin", "it closed its channel and did not exit"),
        timeout("spin"),
        killed("exit with 0", "exited with status 0"),
        killed("exit with 1", "exited with status 1"),
        killed("exit with 71", "exited with status 71"),
        killed("exit with 255", "exited with status 255"),
        timeout("SIGSTOP"),
        killed("SIGSEGV", "SIGSEGV"),
        killed("SIGABRT", "SIGABRT"),
        killed("SIGKILL", "SIGKILL"),
        killed("SIGTERM", "SIGTERM"),
        killed("an attack", "a system call that only an attack makes"),
    ]
}

fn outcomes() -> Vec<Row> {
    vec![
        error("a value that is no JSON", "the value is not JSON"),
        error("a value that is empty", "the value is not JSON"),
        error("a value that is not UTF-8", "the value is not JSON"),
        error("two values", "the value is not JSON"),
        // No valid JSON text, so the value is returned as the worker wrote it.
        ok("a value with a lone surrogate", json!(r#""\ud800""#)),
        truncated("a value nested too deeply", "[[[["),
        truncated("a value of 8 MB", "[1,1,1"),
        bounded("an error of megabytes"),
        bounded("an error of control characters"),
        bounded("an error of nothing"),
        error("an interrupt that nobody sent", "interrupted"),
        limit("a CPU limit that was not reached", "CPU time limit of 30 s reached"),
        limit("a memory limit that was not reached", "memory limit of 256 MiB reached"),
    ]
}
