//! Checks the manifest: every named test exists, every demand has an entry, and every entry a demand.

use std::collections::{BTreeMap, BTreeSet};

use crate::manifest::{Manifest, Requirement, Side};

/// Everything that is wrong with the manifest, given the tests that exist.
pub fn problems(manifests: &[Manifest], tests: &BTreeSet<String>) -> Vec<String> {
    let mut problems = Vec::new();
    let mut ids = BTreeSet::new();
    for manifest in manifests {
        for requirement in &manifest.requirements {
            let mut report = |words: String| problems.push(format!("{}: {words}", requirement.id));
            if !ids.insert(&requirement.id) {
                report("there are two of that name".to_owned());
            }
            entry(requirement, tests, &mut report);
        }
        accounts(manifest, &mut problems);
    }
    problems
}

/// What can be checked for an entry alone.
fn entry(requirement: &Requirement, tests: &BTreeSet<String>, report: &mut dyn FnMut(String)) {
    let is_name = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
    if requirement.id.is_empty() || !requirement.id.chars().all(is_name) {
        report("an id has small letters, digits and hyphens".to_owned());
    }
    if requirement.at.is_empty() {
        report("it stands nowhere".to_owned());
    }
    if requirement.text.trim().is_empty() {
        report("it says nothing".to_owned());
    }
    let (evidence, client) = (requirement.evidence(), requirement.client_evidence());
    let one_of_three = "it needs tests, or `open`, or `not_applicable`, and only one of them";
    match (requirement.side, &client) {
        (Side::Other, client) if evidence.alternatives() != 0 || client.is_some() => {
            report("what is demanded of others is not judged".to_owned());
        }
        (Side::Server | Side::Client | Side::Both, _) if evidence.alternatives() != 1 => {
            report(one_of_three.to_owned());
        }
        (Side::Both, client) if client.as_ref().is_none_or(|evidence| evidence.alternatives() != 1) => {
            report(format!("for the client {one_of_three}"));
        }
        (Side::Server | Side::Client, Some(_)) => {
            report("only what is demanded of both sides has something to say for the client apart".to_owned());
        }
        _ => (),
    }
    let named = evidence.tests.iter().chain(client.iter().flat_map(|evidence| &evidence.tests));
    for test in named.filter(|test| !tests.contains(*test)) {
        report(format!("there is no test {test}"));
    }
}

/// Whether the entries of a file account for every normative word of its pages, and for no more.
fn accounts(manifest: &Manifest, problems: &mut Vec<String>) {
    let mut wanted = BTreeMap::new();
    for page in &manifest.pages {
        for (heading, &words) in &page.words {
            wanted.insert((page.revision, format!("{}#{heading}", page.path)), words);
        }
    }
    let mut given = BTreeMap::<_, usize>::new();
    for requirement in &manifest.requirements {
        for (&revision, places) in &requirement.at {
            for place in places.iter() {
                let place = (revision, place.to_owned());
                if !wanted.contains_key(&place) {
                    problems.push(format!("{}: {revision} has no words at {}", requirement.id, place.1));
                }
                *given.entry(place).or_default() += usize::from(!requirement.part);
            }
        }
    }
    for (place, words) in wanted {
        let given = given.get(&place).copied().unwrap_or_default();
        if given != words {
            let (revision, place) = place;
            problems.push(format!(
                "{}: {words} normative words at {revision} {place}, but entries for {given}",
                manifest.name
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "[[page]]\nrevision = \"2026-07-28\"\npath = \"p\"\nwords = { top = 2 }\n";

    fn complaints_of(entries: &str) -> Vec<String> {
        let manifest: Manifest = toml::from_str(&format!("{PAGE}{entries}")).unwrap();
        problems(&[manifest], &BTreeSet::from(["a::test".to_owned()]))
    }

    fn entry(id: &str, place: &str, rest: &str) -> String {
        let at = format!("at = {{ 2026-07-28 = {place} }}\nlevel = \"must\"\ntext = \"It does.\"");
        format!("[[requirement]]\nid = \"{id}\"\n{at}\n{rest}\n")
    }

    const SHOWN: &str = "side = \"server\"\ntests = [\"a::test\"]";

    #[test]
    fn entries_that_account_for_every_word_are_good() {
        let both = entry("a", "\"p#top\"", SHOWN) + &entry("b", "\"p#top\"", "side = \"other\"");
        assert_eq!(complaints_of(&both), Vec::<String>::new());
        assert_eq!(complaints_of(&entry("a", "[\"p#top\", \"p#top\"]", SHOWN)), Vec::<String>::new());
    }

    #[test]
    fn a_word_without_an_entry_and_an_entry_without_a_word_are_seen() {
        assert!(complaints_of(&entry("a", "\"p#top\"", SHOWN))[0].contains("2 normative words"));
        let part = format!("{SHOWN}\npart = true");
        let three = entry("a", "[\"p#top\", \"p#top\"]", SHOWN) + &entry("b", "\"p#top\"", &part);
        assert_eq!(complaints_of(&three), Vec::<String>::new());
        let elsewhere = entry("a", "[\"p#top\", \"p#top\", \"p#else\"]", SHOWN);
        assert!(complaints_of(&elsewhere)[0].contains("no words at p#else"));
    }

    #[test]
    fn a_test_that_does_not_exist_is_seen() {
        let gone = "side = \"server\"\ntests = [\"a::gone\"]";
        assert_eq!(complaints_of(&entry("a", "[\"p#top\", \"p#top\"]", gone)), ["a: there is no test a::gone"]);
    }

    #[test]
    fn an_entry_stands_in_one_way_only() {
        for rest in [
            "side = \"both\"",
            "side = \"client\"",
            "side = \"server\"\nopen = \"x\"\nnot_applicable = \"y\"",
            "side = \"other\"\nopen = \"x\"",
            "side = \"both\"\nopen = \"x\"",
            "side = \"both\"\nopen = \"x\"\nclient = { open = \"x\", not_applicable = \"y\" }",
            "side = \"server\"\nopen = \"x\"\nclient = { open = \"x\" }",
        ] {
            assert_eq!(complaints_of(&entry("a", "[\"p#top\", \"p#top\"]", rest)).len(), 1, "{rest}");
        }
    }

    #[test]
    fn what_is_demanded_of_both_is_judged_for_each() {
        let both = format!("{}\nclient = {{ tests = [\"a::gone\"] }}", SHOWN.replace("server", "both"));
        assert_eq!(complaints_of(&entry("a", "[\"p#top\", \"p#top\"]", &both)), ["a: there is no test a::gone"]);
    }

    #[test]
    fn names_are_unique_and_plain() {
        let twice = entry("a", "\"p#top\"", SHOWN) + &entry("a", "\"p#top\"", SHOWN);
        assert_eq!(complaints_of(&twice), ["a: there are two of that name"]);
        assert_eq!(complaints_of(&entry("An Id", "[\"p#top\", \"p#top\"]", SHOWN)).len(), 1);
    }
}
