//! The seeds that broke a law once, grouped by cause. They are run again with each change.
//!
//! They are listed in `failed-seeds.txt`, which describes its format.

use crate::law::Law;
use crate::seed::Seed;
use crate::worlds::World;

const LIST: &str = include_str!("../failed-seeds.txt");

/// Why seeds failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The law that they broke.
    pub law: Law,
    /// What was mended: the core, the server, the client or a checker.
    pub part: &'static str,
    /// What was wrong.
    pub what: &'static str,
    /// The seeds.
    pub seeds: Vec<(World, Seed)>,
}

/// All seeds, for tests.
///
/// # Panics
///
/// The list cannot be read.
pub fn all() -> Vec<(World, Seed)> {
    let causes = causes().unwrap_or_else(|error| panic!("{error}"));
    causes.into_iter().flat_map(|cause| cause.seeds).collect()
}

/// All seeds, by cause.
///
/// # Errors
///
/// A line of the list cannot be read.
pub fn causes() -> Result<Vec<Cause>, String> {
    parse(LIST)
}

fn parse(list: &'static str) -> Result<Vec<Cause>, String> {
    let mut causes: Vec<Cause> = Vec::new();
    for (index, line) in list.lines().enumerate() {
        let entry = line.split('#').next().unwrap_or_default().trim();
        let error = |why: &str| format!("testing/sim/failed-seeds.txt:{}: {why}: {line}", index + 1);
        if entry.is_empty() {
            continue;
        }
        if entry.starts_with('[') {
            causes.push(cause(entry).ok_or_else(|| error("malformed cause"))?);
            continue;
        }
        let seed = seed(entry).ok_or_else(|| error("malformed seed"))?;
        if causes.iter().any(|cause| cause.seeds.contains(&seed)) {
            return Err(error("duplicate seed"));
        }
        causes.last_mut().ok_or_else(|| error("seed without a cause"))?.seeds.push(seed);
    }
    match causes.iter().find(|cause| cause.seeds.is_empty()) {
        Some(cause) => Err(format!("testing/sim/failed-seeds.txt: cause without a seed: {}", cause.what)),
        None => Ok(causes),
    }
}

fn cause(line: &'static str) -> Option<Cause> {
    let (head, what) = line.strip_prefix('[')?.split_once("] ")?;
    let (law, part) = head.split_once("; ")?;
    let law = Law::ALL.iter().copied().find(|known| known.to_string() == law)?;
    let known = ["core", "server", "client", "checker"].contains(&part);
    known.then_some(Cause { law, part, what, seeds: Vec::new() })
}

fn seed(line: &str) -> Option<(World, Seed)> {
    let mut words = line.split_whitespace();
    let (world, number) = (World::by_name(words.next()?)?, words.next()?.parse().ok()?);
    let plain = match words.next() {
        None => false,
        Some("plain") => true,
        Some(_) => return None,
    };
    words.next().is_none().then_some((world, Seed { number, plain }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_can_be_read() {
        assert!(all().len() >= 60);
    }

    #[test]
    fn seeds_belong_to_the_cause_above_them() {
        let causes = parse("# text\n\n[L5; core] It waits.\nhttp 7 plain # first\nclient 8\n").unwrap();
        let seeds = vec![(World::Http, Seed::plain(7)), (World::Client, Seed::from(8))];
        assert_eq!(causes, [Cause { law: Law::Closing, part: "core", what: "It waits.", seeds }]);
    }

    #[test]
    fn what_cannot_be_read_is_an_error_that_names_the_line() {
        for (list, why) in [
            ("[L5; core] x\nhttp seven", ":2: malformed seed: http seven"),
            ("[L5; core] x\nhttp 7 odd", ":2: malformed seed"),
            ("[L5; core] x\nhttp 7 plain 8", ":2: malformed seed"),
            ("[L5; core] x\nhttp 7\nhttp 7", ":3: duplicate seed"),
            ("http 7", ":1: seed without a cause"),
            ("[L11; core] x\nhttp 7", ":1: malformed cause"),
            ("[L5; core] x", "cause without a seed: x"),
        ] {
            let error = parse(list).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
