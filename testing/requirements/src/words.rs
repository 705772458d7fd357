//! Counts the normative words of a page, heading by heading.
//!
//! A word counts wherever it stands, in code and tables too, unless it is only spoken of, in quotation marks.

use std::collections::{BTreeMap, BTreeSet};

/// The heading of what stands before the first one.
pub const TOP: &str = "top";

const NORMATIVE: &[&str] = &["MUST", "SHALL", "REQUIRED", "SHOULD", "RECOMMENDED"];

/// How many normative words stand under each heading of a page; headings without one are left out, and headings of one
/// name are counted together.
pub fn count(page: &str) -> BTreeMap<String, usize> {
    count_without(page, &BTreeSet::new())
}

/// The lines of a page that have a normative word, without what is not a letter or a digit.
pub fn lines(page: &str) -> impl Iterator<Item = String> {
    page.lines().filter(|line| words_of(line) > 0).map(plain)
}

fn plain(line: &str) -> String {
    line.chars().filter(char::is_ascii_alphanumeric).map(|character| character.to_ascii_lowercase()).collect()
}

/// The same as [`count`], without the words of lines that are known from elsewhere.
pub fn count_without(page: &str, known: &BTreeSet<String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let mut heading = TOP.to_owned();
    let mut in_code = false;
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if let Some(words) = line.strip_prefix('#').filter(|_| !in_code) {
            heading = anchor(words.trim_start_matches('#'));
        }
        let found = words_of(line);
        if found > 0 && !known.contains(&plain(line)) {
            *counts.entry(heading.clone()).or_default() += found;
        }
    }
    counts
}

/// The anchor of a heading: its letters and digits, joined by hyphens.
fn anchor(heading: &str) -> String {
    let lower = heading.to_ascii_lowercase();
    let parts = lower.split(|character: char| !character.is_ascii_alphanumeric());
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

fn words_of(line: &str) -> usize {
    let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut rest = line;
    let mut before = None;
    let mut found = 0;
    while let Some(start) = rest.find(is_word) {
        before = rest[..start].chars().next_back().or(before);
        rest = &rest[start..];
        let end = rest.find(|character| !is_word(character)).unwrap_or(rest.len());
        found += usize::from(NORMATIVE.contains(&&rest[..end]) && before != Some('"'));
        rest = &rest[end..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_under_their_heading() {
        let page = "It MUST.\n## `_meta` and more\nA **MUST NOT** and SHOULD, MAY.\n### None\n### Last\n| SHALL |";
        let counts: Vec<_> = count(page).into_iter().collect();
        assert_eq!(counts, [("last".into(), 1), ("meta-and-more".into(), 2), ("top".into(), 1)]);
    }

    #[test]
    fn code_has_words_but_no_headings() {
        let counts: Vec<_> = count("# A\n```\n# B\n * each key MUST match\n```\nSHOULD").into_iter().collect();
        assert_eq!(counts, [("a".into(), 2)]);
    }

    #[test]
    fn lines_that_are_known_do_not_count() {
        let known = lines("1. It **MUST**.").collect();
        assert_eq!(count_without("* it MUST\n1. It MUST.\nIt SHOULD", &known), BTreeMap::from([("top".into(), 2)]));
    }

    #[test]
    fn words_in_other_words_and_words_that_are_quoted_do_not_count() {
        assert_eq!(count("MUSTARD, MUST_NOT, must; the key word \"MUST\""), BTreeMap::new());
    }
}
