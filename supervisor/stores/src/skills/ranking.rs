//! Ranks skills by how well they match the words of a query.

use super::Skill;

/// Weight of a query word in a skill's search score if the skill's name contains the word.
const IN_NAME: u32 = 8;
/// Weight of a query word in a skill's search score if a tag of the skill contains the word.
const IN_TAGS: u32 = 6;
/// Weight of a query word in a skill's search score if the skill's description contains the word.
const IN_DESCRIPTION: u32 = 3;
/// Maximum number of words of a query for skills. Further words are ignored.
const WORDS_MAX: usize = 32;

/// Minimum score of a skill that a search for tools shows: a word is in its name or its tags, or several words are in its
/// description.
pub(super) const RELEVANT: u32 = IN_NAME;

/// Returns the indexes in `skills` of the skills that match a query with at least the score `least`, best first. If
/// `least` is 0, an empty query matches all skills.
pub(super) fn rank(query: &str, skills: &[Skill], least: u32) -> Vec<usize> {
    let words: Vec<String> = words(query).take(WORDS_MAX).collect();
    let mut scored: Vec<(u32, usize)> = Vec::new();
    for (index, skill) in skills.iter().enumerate() {
        let score: u32 = words.iter().map(|word| score(word, skill)).sum();
        if (score > 0 || words.is_empty()) && score >= least {
            scored.push((score, index));
        }
    }
    scored.sort_by(|one, other| {
        other.0.cmp(&one.0).then_with(|| skills[one.1].name.cmp(&skills[other.1].name))
    });
    scored.into_iter().map(|(_, index)| index).collect()
}

/// Returns what one query word contributes to a skill's search score; 0 if the skill does not match the word.
fn score(word: &str, skill: &Skill) -> u32 {
    let best = |text: &str| words(text).map(|found| word_match(word, &found)).max().unwrap_or(0);
    let tags = skill.tags.iter().map(|tag| best(tag)).max().unwrap_or(0);
    IN_NAME * best(skill.name.as_str()) + IN_TAGS * tags + IN_DESCRIPTION * best(&skill.description)
}

/// Compares a query word with a word of a skill. Returns 2 if they are equal, 1 if the shorter word has at least 3
/// bytes and the longer one begins with it (`report` and `reports`), else 0.
fn word_match(word: &str, found: &str) -> u32 {
    let alike = |long: &str, short: &str| short.len() >= 3 && long.starts_with(short);
    match () {
        () if word == found => 2,
        () if alike(found, word) || alike(word, found) => 1,
        () => 0,
    }
}

/// Returns the words of a text, converted to lower case.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::super::Name;
    use super::*;
    use lockhouse_protocol::Language;

    fn skill(name: &str, description: &str, tags: &[&str]) -> Skill {
        Skill {
            name: Name::parse(name).expect("a name"),
            description: description.into(),
            tags: tags.iter().map(ToString::to_string).collect(),
            language: Language::Python,
            version: 1,
            code: "x\n".into(),
            tests: None,
        }
    }

    #[test]
    fn names_count_more_than_tags_and_tags_more_than_descriptions() {
        let skills = [
            skill("mail", "Sends the report.", &[]),
            skill("numbers", "Adds.", &["report"]),
            skill("weekly_report", "What happened.", &[]),
            skill("other", "Nothing.", &["x"]),
        ];
        assert_eq!(rank("report", &skills, 0), [2, 1, 0]);
        assert_eq!(rank("REPORTS weekly", &skills, 0), [2, 1, 0]);
        assert_eq!(rank("", &skills, 0), [0, 1, 3, 2]);
        assert!(rank("zzz", &skills, 0).is_empty());
    }
}
