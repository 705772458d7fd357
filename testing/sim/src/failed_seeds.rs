//! Every seed that ever broke a law, to be run again with each change.
//!
//! They are in `failed-seeds.txt`: a world, a number, `plain` if its script was drawn without bias, and what it said.

use crate::seed::Seed;
use crate::worlds::World;

const LIST: &str = include_str!("../failed-seeds.txt");

/// All of them.
pub fn all() -> Vec<(World, Seed)> {
    LIST.lines().filter_map(read).collect()
}

fn read(line: &str) -> Option<(World, Seed)> {
    let mut words = line.split('#').next()?.split_whitespace();
    let (world, number) = (World::by_name(words.next()?)?, words.next()?.parse().ok()?);
    let plain = match words.next() {
        None => false,
        Some("plain") => true,
        Some(_) => return None,
    };
    Some((world, Seed { number, plain }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_seed_or_a_comment() {
        for line in LIST.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            assert!(read(line).is_some(), "{line}");
        }
    }

    #[test]
    fn each_stands_there_once() {
        let mut all = all();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
