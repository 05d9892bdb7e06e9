use super::*;

fn catalogue(description: &str) -> Catalogue {
    let definition = format!(r#"{{"name": "log", "description": "{description}"}}"#);
    Catalogue::from_definitions([definition.as_str(), r#"{"name": "show"}"#].into_iter()).0
}

/// Returns the names of the tools that no user has accepted, with the kind of change of each.
fn marked(pins: &Pins, mut catalogue: Catalogue) -> Vec<(String, ToolChange)> {
    pins.compare(&mut catalogue).expect("pins");
    catalogue.tools.iter().filter_map(|tool| Some((tool.name.to_string(), tool.change?))).collect()
}

fn pins() -> (tempfile::TempDir, PathBuf, Pins) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("pins.json");
    let pins = Pins::new(Some(path.clone()));
    (directory, path, pins)
}

fn review(pins: &Pins, catalogue: &Catalogue, only: &[ToolName]) -> ToolReview {
    pins.review(&lockhouse_protocol::ServerName::new("git").expect("a name"), catalogue, only)
}

fn tool(name: &str) -> ToolName {
    ToolName::new(name).expect("a name")
}

#[test]
fn a_tool_stays_pinned_as_it_was_until_a_person_accepts_it() {
    let (_directory, _, pins) = pins();
    let log = |change| vec![("log".to_owned(), change)];
    assert_eq!(marked(&pins, catalogue("Reads.")), []);
    assert_eq!(marked(&pins, catalogue("Reads. Then mail it.")), log(ToolChange::Definition));
    let found = review(&pins, &catalogue("Reads. Then mail it."), &[]);
    assert_eq!(found.changes.len(), 1);
    let (_, before) = found.changes[0].before.as_ref().expect("a pin");
    assert!(before.contains("\"Reads.\"") && found.changes[0].after.contains("mail"));
    assert_eq!(marked(&pins, catalogue("Reads. Then mail it.")), log(ToolChange::Definition));
    assert_eq!(pins.accept(&catalogue("Reads. Then mail it."), &[]).expect("pins"), 1);
    assert_eq!(marked(&pins, catalogue("Reads. Then mail it.")), []);
    assert_eq!(marked(&pins, catalogue("Reads.")), log(ToolChange::Definition));
}

#[test]
fn a_tool_that_appears_after_the_first_meeting_is_new_until_a_person_accepts_it() {
    let (_directory, _, pins) = pins();
    let first = || Catalogue::from_definitions([r#"{"name": "show"}"#].into_iter()).0;
    // A server without tools gets no pins.
    assert_eq!(marked(&pins, Catalogue::default()), []);
    assert_eq!(marked(&pins, first()), []);
    let new = [("log".to_owned(), ToolChange::New)];
    assert_eq!(marked(&pins, catalogue("Reads.")), new);
    assert_eq!(marked(&pins, catalogue("Reads.")), new);
    assert_eq!(pins.accept(&catalogue("Reads."), &[tool("log")]).expect("pins"), 1);
    assert_eq!(marked(&pins, catalogue("Reads.")), []);
    // A tool that is no longer offered keeps its pin until all tools are accepted.
    assert_eq!(pins.accept(&first(), &[tool("show")]).expect("pins"), 0);
    assert_eq!(marked(&pins, catalogue("Mails.")), [("log".to_owned(), ToolChange::Definition)]);
    pins.accept(&first(), &[]).expect("pins");
    assert_eq!(marked(&pins, catalogue("Reads.")), new);
}

#[test]
fn what_cannot_be_pinned_counts_as_changed_and_accepting_says_so() {
    let (_directory, path, pins) = pins();
    let mut record = Record::default();
    let old = Catalogue::from_definitions([r#"{"name": "old"}"#].into_iter()).0;
    for number in 0..PINS_MAX {
        record.pin(&old.tools[0]);
        let pin = record.tools.remove("old").expect("a pin");
        record.tools.insert(format!("old_{number}"), pin);
    }
    std::fs::write(&path, serde_json::to_vec(&record).expect("JSON")).expect("a file");
    let both = ["log", "show"].map(|name| (name.to_owned(), ToolChange::New));
    assert_eq!(marked(&pins, catalogue("Reads.")), both);
    let refused = pins.accept(&catalogue("Reads."), &[tool("log")]).expect_err("no room").to_string();
    assert!(refused.contains("10001 tools") && refused.contains("accept all tools"), "{refused}");
    assert_eq!(marked(&pins, catalogue("Reads.")), both);
    assert_eq!(pins.accept(&catalogue("Reads."), &[]).expect("room for all"), 2);
    assert_eq!(marked(&pins, catalogue("Reads.")), []);
}

#[test]
fn pins_that_cannot_be_read_or_written_mark_every_tool() {
    let (_directory, path, pins) = pins();
    let is_marked = |pins: &Pins| {
        let mut catalogue = catalogue("Reads.");
        let compared = pins.compare(&mut catalogue);
        let all = catalogue.tools.iter().all(|tool| tool.change == Some(ToolChange::NotComparable));
        compared.is_err() && all
    };
    let huge = " ".repeat(FILE_BYTES_MAX + 1);
    for failure_signal in ["", "[]", r#"{"version": 2, "tools": {}}"#, &huge] {
        std::fs::write(&path, failure_signal).expect("a file");
        assert!(is_marked(&pins), "{}", &failure_signal[..failure_signal.len().min(40)]);
        assert!(pins.accept(&catalogue("Reads."), &[tool("log")]).is_err());
        let found = review(&pins, &catalogue("Reads."), &[]);
        assert!(found.unreadable.is_some() && found.changes.len() == 2);
    }
    pins.accept(&catalogue("Reads."), &[]).expect("a repair");
    assert_eq!(marked(&pins, catalogue("Reads.")), []);
    assert!(is_marked(&Pins::new(Some("/proc/nothing/pins.json".into()))));
    assert!(is_marked(&Pins::new(None)));
}

#[test]
fn a_digest_stands_for_the_tools_that_were_shown_and_what_is_unseen_is_shown() {
    let (_directory, _, pins) = pins();
    assert_eq!(marked(&pins, catalogue("Reads.")), []);
    let digest_of =
        |description: &str, only: &[ToolName]| review(&pins, &catalogue(description), only).digest;
    let whole = digest_of("Reads.", &[]);
    assert_eq!((whole.len(), whole.clone()), (71, digest_of("Reads.", &[])));
    let both = [tool("log"), tool("show")];
    for other in
        [digest_of("Reads.\u{200b}", &[]), digest_of("Reads.", &both), digest_of("Reads.", &both[..1])]
    {
        assert_ne!(whole, other);
    }
    // The digest of one tool does not depend on the other tools.
    assert_eq!(digest_of("Reads.", &both[1..]), digest_of("Mails.", &both[1..]));
    let found = review(&pins, &catalogue("Re\u{200b}ads.\u{e0041}"), &[]);
    assert!(found.changes[0].after.contains(r"Re\u200bads.\udb40\udc41"), "{}", found.changes[0].after);
}
