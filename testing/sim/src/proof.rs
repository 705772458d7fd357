//! The record of what was searched, as the tables of `docs/proof.md`.
//!
//! Each search adds a line to `testing/record.tsv`: `sim --record`, `sim explore --record` and `fuzz/run` with `RECORD` set.
//! `sim proof` makes the tables from these lines, from the list of mutants and from the seeds that failed once; a test compares
//! them with the document.

pub mod record;

use std::collections::BTreeMap;
use std::fmt::Write;

use steadfast_proto::mutant::Mutant;

use crate::failed_seeds::{self, Cause};
use crate::mutants::TABLE;
use crate::worlds::World;
use record::Entry;

/// The marker comment before the tables in the document.
pub const BEGIN: &str = "<!-- Made by `cargo run --release -p sim -- proof`; do not edit. -->";
/// The marker comment after the tables.
pub const END: &str = "<!-- The end of what was made. -->";

/// The document at `path` with its tables made anew.
///
/// # Errors
///
/// The document has no marker comments, or the record or the list of failed seeds is malformed.
pub fn renew(path: &str, document: &str, record: &str) -> Result<String, String> {
    let missing = || format!("marker comment not found in {path}");
    let (before, rest) = document.split_once(BEGIN).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    Ok(format!("{before}{BEGIN}\n\n{}{END}{after}", render(record)?))
}

fn render(record: &str) -> Result<String, String> {
    let entries = record::read(record).map_err(|why| format!("testing/record.tsv, {why}"))?;
    let causes = failed_seeds::causes()?;
    let mut text = String::new();
    totals(&mut text, &entries);
    runs(&mut text, &entries);
    explored(&mut text, &entries);
    fuzzed(&mut text, &entries);
    mended(&mut text, &causes);
    mutants(&mut text)?;
    Ok(text)
}

fn totals(text: &mut String, entries: &[Entry]) {
    let mut sums: BTreeMap<(World, bool), [u64; 3]> = BTreeMap::new();
    for entry in entries {
        let Entry::Seeds { world, seeds, violations, plain, .. } = entry else { continue };
        let sum = sums.entry((*world, *plain)).or_default();
        *sum = [sum[0] + 1, sum[1] + seeds, sum[2] + violations];
    }
    let row = |((world, plain), [runs, seeds, violations]): ((World, bool), [u64; 3])| {
        [world.to_string(), scripts(plain).to_owned(), runs.to_string(), seeds.to_string(), violations.to_string()]
    };
    let rows: Vec<_> = sums.into_iter().map(row).collect();
    table(text, "### Seeds, in all", ["world", "scripts", "runs", "seeds", "violations"], &rows);
}

fn runs(text: &mut String, entries: &[Entry]) {
    let row = |entry: &Entry| {
        let Entry::Seeds { commit, world, start, seeds, violations, rate, plain } = entry else { return None };
        let numbers = [start, seeds, violations].map(u64::to_string);
        let [start, seeds, violations] = numbers;
        let rate = rate.map_or_else(|| "-".to_owned(), |rate| rate.to_string());
        Some([commit.clone(), world.to_string(), scripts(*plain).to_owned(), start, seeds, violations, rate])
    };
    let rows: Vec<_> = entries.iter().filter_map(row).collect();
    let columns = ["commit", "world", "scripts", "first seed", "seeds", "violations", "seeds per second per core"];
    table(text, "### Seeds, run by run", columns, &rows);
}

fn scripts(plain: bool) -> &'static str {
    if plain { "without bias" } else { "biased" }
}

fn explored(text: &mut String, entries: &[Entry]) {
    let row = |entry: &Entry| {
        let Entry::Explore { commit, worlds, states, violations, full } = entry else { return None };
        let [worlds, states, violations] = [worlds, states, violations].map(u64::to_string);
        Some([commit.clone(), record::size(*full).to_owned(), worlds, states, violations])
    };
    let rows: Vec<_> = entries.iter().filter_map(row).collect();
    table(text, "### Exhaustive search", ["commit", "size", "worlds", "states", "violations"], &rows);
}

fn fuzzed(text: &mut String, entries: &[Entry]) {
    let mut total = 0;
    let mut rows = Vec::new();
    for entry in entries {
        let Entry::Fuzz { commit, target, seconds, executions, findings } = entry else { continue };
        total += seconds;
        let executions = executions.map_or_else(|| "unknown".to_owned(), |count| count.to_string());
        rows.push([commit.clone(), target.clone(), seconds.to_string(), executions, findings.clone()]);
    }
    table(text, "### Fuzzing", ["commit", "target", "seconds", "executions", "findings"], &rows);
    // Writing to a string does not fail.
    let _ = writeln!(text, "Total: {}.{} hours.\n", total / 3_600, total % 3_600 / 360);
}

fn mended(text: &mut String, causes: &[Cause]) {
    let count = |part: &str| causes.iter().filter(|cause| cause.part == part).count();
    let parts = ["core", "server", "client", "checker"].map(|part| format!("{part}: {}", count(part)));
    let seeds = |cause: &Cause| {
        let of = |world: World| cause.seeds.iter().filter(|(of, _)| *of == world).count();
        let counts = World::ALL.map(|world| (world, of(world)));
        let counts = counts.iter().filter(|(_, count)| *count > 0);
        counts.map(|(world, count)| format!("{count} of {world}")).collect::<Vec<_>>().join(", ")
    };
    let row = |cause: &Cause| [cause.law.to_string(), cause.part.to_owned(), cause.what.to_owned(), seeds(cause)];
    let rows: Vec<_> = causes.iter().map(row).collect();
    table(text, "### Violations found and fixed", ["law", "fixed in", "what was wrong", "seeds kept"], &rows);
    let total: usize = causes.iter().map(|cause| cause.seeds.len()).sum();
    let _ = writeln!(
        text,
        "Causes by the part that was fixed: {}. `sim replay` runs all {total} seeds.\n",
        parts.join(", ")
    );
}

fn mutants(text: &mut String) -> Result<(), String> {
    let row = |mutant: &Mutant| {
        let checkers = TABLE.iter().filter(|(listed, ..)| listed == mutant);
        let checkers: Vec<String> = checkers.map(|(_, law, place)| format!("{law} in {}", place.name())).collect();
        if checkers.is_empty() {
            return Err(format!("no checker is listed for the mutant {mutant:?}: see testing/sim/src/mutants.rs"));
        }
        Ok([format!("{mutant:?}"), checkers.join("; ")])
    };
    let rows = Mutant::ALL.iter().map(row).collect::<Result<Vec<_>, _>>()?;
    table(text, &format!("### Mutants: {}", rows.len()), ["fault", "caught by the checker of"], &rows);
    Ok(())
}

fn table<const COLUMNS: usize>(
    text: &mut String,
    title: &str,
    columns: [&str; COLUMNS],
    rows: &[[impl AsRef<str>; COLUMNS]],
) {
    let _ = writeln!(text, "{title}\n");
    if rows.is_empty() {
        text.push_str("Nothing is recorded.\n\n");
        return;
    }
    let _ = writeln!(text, "| {} |\n|{}", columns.join(" | "), "---|".repeat(COLUMNS));
    for row in rows {
        let cells: Vec<&str> = row.iter().map(AsRef::as_ref).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = "# kind\tcommit\nseeds\tabc\tclient\t5\t100\t0\nseeds\tabd\tclient\t9\t200\t1\t3000\n\
        plain seeds\tabd\tclient\t9\t50\t0\t3000\nexplore\tabc\t12\t600\t1\tfull\nfuzz\tabc\tsse\t5400\t77\t0\n";

    #[test]
    fn the_record_becomes_tables_in_their_place() {
        let document = format!("before\n{BEGIN}\nwhat was there\n{END}\nafter\n");
        let renewed = renew("x.md", &document, RECORD).unwrap();
        assert!(
            renewed.starts_with("before\n") && renewed.ends_with("\nafter\n") && !renewed.contains("what was there")
        );
        for row in [
            "| client | biased | 2 | 300 | 1 |",
            "| client | without bias | 1 | 50 | 0 |",
            "| abc | client | biased | 5 | 100 | 0 | - |",
            "| abd | client | without bias | 9 | 50 | 0 | 3000 |",
            "| abc | full | 12 | 600 | 1 |",
            "| abc | sse | 5400 | 77 | 0 |",
            "Total: 1.5 hours.",
        ] {
            assert!(renewed.contains(row), "{row} is not in {renewed}");
        }
        assert_eq!(renew("x.md", &renewed, RECORD).unwrap(), renewed);
    }

    #[test]
    fn a_document_without_a_place_and_a_malformed_record_are_errors() {
        assert_eq!(renew("x.md", "no place", RECORD).unwrap_err(), "marker comment not found in x.md");
        let document = format!("{BEGIN}{END}");
        let error = renew("x.md", &document, "seeds\tabc\tclient\t5\tmany\t0").unwrap_err();
        assert!(error.starts_with("testing/record.tsv, line 1: `many` is not a number"), "{error}");
    }
}
