//! Words that people use for one another when they ask for a tool. They count less than the word that was written.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::words::stem;

/// What a word counts that was not written, but means the same.
const SAME: f32 = 0.62;
/// An abbreviation is the word itself.
const SHORT: f32 = 0.9;
/// And one that is near.
const NEAR: f32 = 0.5;

/// Each line is one meaning. A word may be in several.
const SAME_MEANING: [&str; 108] = [
    // What is done.
    "get fetch read retrieve show view load obtain see",
    "list enumerate browse",
    "create add new make",
    "delete remove drop erase destroy forget rid purge clear",
    "update edit change modify set patch adjust",
    "search find query look lookup discover",
    "send post publish tell notify",
    "run execute invoke launch start trigger play",
    "stop cancel end terminate abort halt finish close",
    "rename move modify",
    "copy duplicate clone fork",
    "download export save fetch",
    "upload import attach send load",
    "reply respond answer comment note",
    "reaction react emoji thumb",
    "draw plot visualize visualise chart graph diagram generate render picture",
    "check validate verify lint valid test correct",
    "fix repair autofix solve resolve correct",
    "explain describe analyze analyse analysis understand",
    "diagnose troubleshoot debug investigate crash",
    "convert transform turn translate change",
    "count number statistics",
    "switch checkout choose select activate pick",
    "undo revert rollback reset unstage",
    "write save store put insert append add",
    "resize scale",
    "deploy apply install provision release",
    "click press push tap",
    "hover mouse pointer cursor",
    "wait until poll",
    "combine merge join",
    "accept approve merge confirm allow",
    "reject decline deny refuse dismiss",
    "restart rerun retry again",
    "think reason thinking thought",
    "compare diff difference change",
    "monitor watch notify alert track",
    "summarize summary pivot aggregate average",
    "sort order arrange",
    "link connect associate association relate relation relationship",
    "grant permission role access right assignment",
    "record capture",
    "schedule recurring nightly night daily cron",
    "authenticate login auth sign token",
    "scrape crawl extract",
    "echo repeat",
    "drain cordon maintenance",
    "expose forward tunnel localhost",
    "protect lock restrict",
    // What it is done to.
    "repository repo project",
    "directory folder",
    "database db",
    "pr pull",
    "mr merge",
    "issue ticket bug problem error",
    "documentation doc docs manual guide guidance reference",
    "configuration config setting option preference",
    "application app",
    "organization org company team",
    "environment env variable",
    "kubernetes k8s kubectl cluster pod container",
    "page site website url link webpage",
    "web internet online",
    "picture image photo screenshot icon media",
    "message text sms",
    "user person people account colleague member profile identity",
    "column field property attribute",
    "row record entry item",
    "spreadsheet workbook excel worksheet sheet",
    "history log commit previous past",
    "price pricing cost money expensive cheap",
    "advice recommendation recommend advisor suggestion",
    "secret password credential",
    "vm virtual machine",
    "similar related semantic nearest",
    "color colour font format style bold",
    "author blame",
    "macro vba",
    "popup dialog alert modal",
    "dropdown select option",
    "size bytes large big metadata",
    "health outage availability incident down",
    "audio sound recording voice speech aloud speak",
    "note engagement",
    "customer contact company client",
    "paper scientific publication arxiv article citation cite",
    "local near nearby",
    "restaurant business shop",
    "network request traffic http",
    "performance slow fast speed trace",
    "freeze frozen pane",
    "template example sample",
    "correlation scatter",
    "trend time timeline",
    "proportion share part percentage",
    "hierarchy hierarchical tree organization",
    "stage step process",
    "map location place geographic",
    "key value",
    "todo task",
    "artifact build",
    "ci pipeline workflow",
    "workflow automation",
    "replica scale",
    "duplicate deduplicate",
    "json structured",
    "timezone time clock",
    "disk drive",
];

/// Words and their short forms.
const SHORT_FORMS: [&str; 30] = [
    "repo repository",
    "db database",
    "pr pull",
    "mr merge",
    "doc documentation",
    "dir directory folder",
    "config configuration",
    "app application",
    "org organization",
    "env environment",
    "k8s kubernetes kubectl",
    "vm virtual",
    "msg message",
    "img image",
    "param parameter",
    "auth authentication",
    "vba macro",
    "js javascript",
    "ts typescript",
    "mongo mongodb",
    "postgres postgresql",
    "colour color",
    "spec specification",
    "info information",
    "stats statistics",
    "lib library",
    "admin administrator",
    "webpage page",
    "url link",
    "pic image",
];

/// Words that are often meant together.
const NEAR_MEANING: [&str; 14] = [
    "list all every everything get",
    "create write",
    "file document disk",
    "document text file",
    "collection table",
    "schema structure column relation",
    "browser page tab",
    "read open",
    "remember memory knowledge entity observation know",
    "fact entity node",
    "message note",
    "error log exception crash",
    "failure fail error status",
    "query sql select",
];

static MEANINGS: LazyLock<HashMap<String, Vec<(String, f32)>>> = LazyLock::new(|| {
    let mut meanings: HashMap<String, Vec<(String, f32)>> = HashMap::new();
    for (lines, weight) in [(&SHORT_FORMS[..], SHORT), (&SAME_MEANING[..], SAME), (&NEAR_MEANING[..], NEAR)] {
        for line in lines {
            let words: Vec<String> = line.split(' ').map(stem).collect();
            for word in &words {
                let others = meanings.entry(word.clone()).or_default();
                for other in words.iter().filter(|other| *other != word) {
                    if !others.iter().any(|(known, _)| known == other) {
                        others.push((other.clone(), weight));
                    }
                }
            }
        }
    }
    meanings
});

/// What else a word may mean, and how much it counts.
pub(super) fn of(word: &str) -> &'static [(String, f32)] {
    MEANINGS.get(word).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meaning_goes_both_ways_and_never_to_itself() {
        for (word, others) in MEANINGS.iter() {
            assert!(others.len() < 24, "{word}: {others:?}");
            for (other, weight) in others {
                assert_ne!(word, other);
                let back = of(other).iter().find(|(back, _)| back == word);
                assert_eq!(back.map(|(_, weight)| weight), Some(weight), "{word} {other}");
            }
        }
    }
}
