//! The record of what was searched, as the tables of `docs/proof.md`.
//!
//! Each search adds a line to `testing/record.tsv`: `sim --record`, `sim explore --record` and `fuzz/run` with `RECORD` set.
//! The tables are made of these lines, of the list of mutants and of the seeds that ever failed, by `sim proof`; a test
//! compares them with the document.

use std::collections::BTreeMap;
use std::fmt::Write;

use steadfast_proto::mutant::Mutant;

use crate::failed_seeds;
use crate::mutants::TABLE;
use crate::worlds::World;

/// What stands before and behind the tables in the document.
pub const BEGIN: &str = "<!-- Made by `cargo run --release -p sim -- proof`; do not edit. -->";
/// See [`BEGIN`].
pub const END: &str = "<!-- The end of what was made. -->";

/// The document with its tables made anew. `None` if it has no place for them.
pub fn renew(document: &str, record: &str) -> Option<String> {
    let (before, rest) = document.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{}{END}{after}", render(record)))
}

fn render(record: &str) -> String {
    let lines: Vec<Vec<&str>> =
        record.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect()).collect();
    let of = |kind: &str| -> Vec<&[&str]> {
        lines.iter().filter(|line| line.first() == Some(&kind)).map(|line| line.get(1..).unwrap_or_default()).collect()
    };
    let mut text = String::new();
    totals(&mut text, &of("seeds"));
    table(&mut text, "### Seeds, run by run", &["commit", "world", "first seed", "seeds", "violations"], &of("seeds"));
    let columns = ["commit", "worlds", "states", "violations"];
    table(&mut text, "### Exhaustive search", &columns, &of("explore"));
    table(&mut text, "### Fuzzing", &["commit", "target", "seconds", "executions", "findings"], &of("fuzz"));
    failed(&mut text);
    mutants(&mut text);
    text
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

fn totals(text: &mut String, runs: &[&[&str]]) {
    let mut sums: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
    for run in runs {
        let [_, world, _, seeds, violations] = run else { continue };
        let (count, all, broken) = sums.entry(world).or_default();
        (*count, *all, *broken) = (*count + 1, *all + number(seeds), *broken + number(violations));
    }
    let rows: Vec<Vec<String>> = sums
        .into_iter()
        .map(|(world, (runs, seeds, broken))| {
            vec![world.to_owned(), runs.to_string(), seeds.to_string(), broken.to_string()]
        })
        .collect();
    let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.iter().map(|cell| &**cell).collect()).collect();
    let rows: Vec<&[&str]> = rows.iter().map(|row| &**row).collect();
    table(text, "### Seeds, in all", &["world", "runs", "seeds", "violations"], &rows);
}

fn table(text: &mut String, title: &str, columns: &[&str], rows: &[&[&str]]) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{title}\n\n| {} |", columns.join(" | "));
    let _ = writeln!(text, "|{}", "---|".repeat(columns.len()));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text.push('\n');
}

fn failed(text: &mut String) {
    let all = failed_seeds::all();
    let rows = World::ALL.map(|world| {
        let count = all.iter().filter(|(of, _)| *of == world).count();
        (world.name(), count.to_string())
    });
    let rows: Vec<Vec<&str>> = rows.iter().map(|(name, count)| vec![*name, &**count]).collect();
    let rows: Vec<&[&str]> = rows.iter().map(|row| &**row).collect();
    table(text, "### Seeds that failed once, and are run with every change", &["world", "seeds"], &rows);
}

fn mutants(text: &mut String) {
    let rows: Vec<(String, String)> = Mutant::ALL
        .iter()
        .map(|mutant| {
            let who = TABLE.iter().filter(|(listed, ..)| listed == mutant);
            let who: Vec<String> = who.map(|(_, law, place)| format!("{law} in {}", place.name())).collect();
            (format!("{mutant:?}"), who.join("; "))
        })
        .collect();
    let rows: Vec<Vec<&str>> = rows.iter().map(|(mutant, who)| vec![&**mutant, &**who]).collect();
    let rows: Vec<&[&str]> = rows.iter().map(|row| &**row).collect();
    table(text, &format!("### Mutants: {}", rows.len()), &["fault", "caught by the checker of"], &rows);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_becomes_tables_in_their_place() {
        let record = "# kind\tcommit\nseeds\tabc\tclient\t5\t100\t0\nseeds\tabd\tclient\t9\t200\t1\n";
        let document = format!("before\n{BEGIN}\nwhat was there\n{END}\nafter\n");
        let renewed = renew(&document, record).unwrap();
        assert!(
            renewed.starts_with("before\n") && renewed.ends_with("\nafter\n") && !renewed.contains("what was there")
        );
        assert!(renewed.contains("| client | 2 | 300 | 1 |"), "{renewed}");
        assert!(renewed.contains("| abc | client | 5 | 100 | 0 |"), "{renewed}");
        assert_eq!(renew(&renewed, record).unwrap(), renewed);
        assert_eq!(renew("no place", record), None);
    }
}
