//! Recognizes names of tools that only read, for servers that do not declare what their tools change.
//!
//! A name is only the server's claim. It decides which calls an answer mentions as possible changes, and nothing else: the
//! policy, the audit log and the text of an error do not depend on it.

use super::search::name_words;

/// Maximum number of words of a name that are compared.
const WORDS_MAX: usize = 16;
/// The first words of names of tools that read.
const READING: &str = "browse cat compare count describe diff explain find get grep head inspect is list locate lookup ls peek \
    preview read search show stat tail view wc";
/// Words that such a name may not contain, because the tool then does more than to read.
const CHANGING: &str = "ack add and append archive book cancel claim clear close commit confirm copy create delete drop edit execute \
    extend fix generate insert join lock mark merge move open or order pay pop post publish purchase push put refresh register \
    release remove rename replace reserve reset resolve restore rotate run save send set start stop submit subscribe sync take \
    then trash trigger update upload upsert write";

/// Returns whether the name of a tool says that the tool only reads, such as `list_issues` or `getUser`, but not
/// `get_or_create_user`.
pub fn is_named_as_read(name: &str) -> bool {
    let has = |words: &str, word: &str| words.split_whitespace().any(|other| other == word);
    let words = name_words(name, WORDS_MAX);
    words.first().is_some_and(|first| has(READING, first))
        && words.len() < WORDS_MAX
        && !words.iter().any(|word| has(CHANGING, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_say_read_are_recognized_and_others_are_not() {
        for name in
            ["list_issues", "getUser", "search-files", "ls", "read_file", "Get_Weather", "describe.table"]
        {
            assert!(is_named_as_read(name), "{name}");
        }
        for name in [
            "",
            "_",
            "send_email",
            "get_or_create_user",
            "getAndDeleteMessage",
            "list_pop",
            "fetch",
            "query",
            "listen",
            "reset_list",
            "get_a_b_c_d_e_f_g_h_i_j_k_l_m_n_o_p_q",
        ] {
            assert!(!is_named_as_read(name), "{name}");
        }
    }
}
