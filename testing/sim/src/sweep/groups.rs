//! Violations, grouped by cause as far as it can be seen: by the message of the shrunk run, with numbers and names
//! left out, and then by the steps that are left of its script.

use std::collections::BTreeMap;

use crate::law::{Law, Violation};
use crate::seed::Seed;
use crate::worlds::Shrunk;

/// A seed that broke a law.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The seed.
    pub seed: Seed,
    /// What it broke.
    pub violation: Violation,
    /// The same, as small as it gets.
    pub shrunk: Option<Shrunk>,
}

/// Findings that say the same.
#[derive(Debug, Clone)]
pub struct Group<'a> {
    /// The law.
    pub law: Law,
    /// What all of them say.
    pub what: String,
    /// The findings, the one with the fewest steps first.
    pub findings: Vec<&'a Finding>,
    /// The steps that were left of their scripts, and of how many.
    pub shapes: BTreeMap<String, usize>,
}

/// Groups findings, the largest group first.
pub fn groups(findings: &[Finding]) -> Vec<Group<'_>> {
    let mut groups: BTreeMap<(Law, String), Group<'_>> = BTreeMap::new();
    for finding in findings {
        let violation = finding.shrunk.as_ref().map_or(&finding.violation, |shrunk| &shrunk.violation);
        let what = generalized(&violation.what);
        let group = groups.entry((violation.law, what.clone())).or_insert_with(|| Group {
            law: violation.law,
            what,
            findings: Vec::new(),
            shapes: BTreeMap::new(),
        });
        if let Some(shrunk) = &finding.shrunk {
            *group.shapes.entry(shrunk.steps.join(", ")).or_default() += 1;
        }
        group.findings.push(finding);
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    for group in &mut groups {
        group.findings.sort_by_key(|finding| finding.shrunk.as_ref().map_or(usize::MAX, |shrunk| shrunk.steps.len()));
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.findings.len()));
    groups
}

/// A message without what differs from run to run: numbers, and what stands in quotes.
pub(crate) fn generalized(message: &str) -> String {
    let mut general = String::new();
    for (place, piece) in message.split('"').enumerate() {
        // Every second piece stands in quotes.
        if place % 2 == 1 {
            general.push('…');
            continue;
        }
        let mut number = false;
        for character in piece.chars() {
            match character {
                '0'..='9' | '.' if number => {}
                '0'..='9' => {
                    general.push('#');
                    number = true;
                }
                other => {
                    general.push(other);
                    number = false;
                }
            }
        }
    }
    general
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(number: u64, what: &str, steps: &[&str]) -> Finding {
        let violation = Violation { law: Law::Closing, what: what.to_owned() };
        let steps = steps.iter().map(|step| (*step).to_owned()).collect();
        let shrunk = Shrunk { violation: violation.clone(), steps, text: String::new() };
        Finding { seed: number.into(), violation, shrunk: Some(shrunk) }
    }

    #[test]
    fn numbers_and_names_make_no_difference() {
        assert_eq!(generalized("call 12 waits 1.5s for \"t12.3\""), "call # waits #s for …");
    }

    #[test]
    fn findings_that_say_the_same_are_one_group_with_the_smallest_first() {
        let findings = [
            finding(1, "call 1 waits", &["Call", "Drop", "Close"]),
            finding(2, "the task \"a\" goes on", &["Call"]),
            finding(3, "call 7 waits", &["Call", "Close"]),
        ];
        let groups = groups(&findings);
        let seen: Vec<(&str, Vec<u64>)> = groups
            .iter()
            .map(|group| (&*group.what, group.findings.iter().map(|finding| finding.seed.number).collect()))
            .collect();
        assert_eq!(seen, [("call # waits", vec![3, 1]), ("the task … goes on", vec![2])]);
        assert_eq!(groups[0].shapes.len(), 2);
    }
}
