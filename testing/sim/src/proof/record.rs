//! The lines of `testing/record.tsv`: a kind and its fields, separated by tabs. Lines that begin with `#` are comments.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::worlds::World;

/// A line of the record: something was searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// Seeds of a world were run.
    Seeds {
        /// The commit of the build.
        commit: String,
        /// The world.
        world: World,
        /// The first seed.
        start: u64,
        /// How many.
        seeds: u64,
        /// How many of them broke a law.
        violations: u64,
        /// Seeds per second per core. Lines from before this was recorded have none.
        rate: Option<u64>,
        /// The scripts were drawn without bias.
        plain: bool,
    },
    /// Small worlds were searched exhaustively.
    Explore {
        /// The commit of the build.
        commit: String,
        /// How many worlds.
        worlds: u64,
        /// How many states they had.
        states: u64,
        /// In how many of the worlds the search failed.
        violations: u64,
        /// The larger worlds (`--full`).
        full: bool,
    },
    /// A target was fuzzed.
    Fuzz {
        /// The commit.
        commit: String,
        /// The target.
        target: String,
        /// For how long.
        seconds: u64,
        /// How many inputs were tried. `None` if the log did not say.
        executions: Option<u64>,
        /// What was found: `0`, or the file of the input.
        findings: String,
    },
}

impl fmt::Display for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seeds { commit, world, start, seeds, violations, rate, plain } => {
                let kind = if *plain { "plain seeds" } else { "seeds" };
                write!(formatter, "{kind}\t{commit}\t{world}\t{start}\t{seeds}\t{violations}")?;
                rate.map_or(Ok(()), |rate| write!(formatter, "\t{rate}"))
            }
            Self::Explore { commit, worlds, states, violations, full } => {
                write!(formatter, "explore\t{commit}\t{worlds}\t{states}\t{violations}\t{}", size(*full))
            }
            Self::Fuzz { commit, target, seconds, executions, findings } => {
                let executions = executions.map_or_else(|| "?".to_owned(), |count| count.to_string());
                write!(formatter, "fuzz\t{commit}\t{target}\t{seconds}\t{executions}\t{findings}")
            }
        }
    }
}

/// The name of a size of worlds.
pub(super) fn size(full: bool) -> &'static str {
    if full { "full" } else { "small" }
}

/// Reads all lines of a record.
///
/// # Errors
///
/// A line is malformed: the message says which, and why.
pub fn read(record: &str) -> Result<Vec<Entry>, String> {
    let lines = record.lines().enumerate().filter(|(_, line)| !line.starts_with('#') && !line.trim().is_empty());
    lines.map(|(index, line)| entry(line).map_err(|why| format!("line {}: {why}: {line}", index + 1))).collect()
}

fn entry(line: &str) -> Result<Entry, String> {
    let fields: Vec<&str> = line.split('\t').collect();
    match fields[..] {
        [kind @ ("seeds" | "plain seeds"), commit, world, start, seeds, violations, ref rest @ ..]
            if rest.len() <= 1 =>
        {
            Ok(Entry::Seeds {
                commit: commit.to_owned(),
                world: World::by_name(world).ok_or_else(|| format!("`{world}` is not a world"))?,
                start: number(start)?,
                seeds: number(seeds)?,
                violations: number(violations)?,
                rate: rest.first().map(|rate| number(rate)).transpose()?,
                plain: kind == "plain seeds",
            })
        }
        ["explore", commit, worlds, states, violations, ref rest @ ..] if rest.len() <= 1 => Ok(Entry::Explore {
            commit: commit.to_owned(),
            worlds: number(worlds)?,
            states: number(states)?,
            violations: number(violations)?,
            full: match rest {
                [] | ["small"] => false,
                ["full"] => true,
                _ => return Err("the size is neither `small` nor `full`".to_owned()),
            },
        }),
        ["fuzz", commit, target, seconds, executions, findings] => Ok(Entry::Fuzz {
            commit: commit.to_owned(),
            target: target.to_owned(),
            seconds: number(seconds)?,
            executions: if executions == "?" { None } else { Some(number(executions)?) },
            findings: findings.to_owned(),
        }),
        _ => Err("unknown kind, or wrong number of fields".to_owned()),
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number"))
}

/// Adds a line to the record in a file.
///
/// # Errors
///
/// The file cannot be written; the message names it.
pub fn append(path: &Path, entry: &Entry) -> Result<(), String> {
    let written = open(path).and_then(|(mut file, text)| {
        let line_break = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        file.write_all(format!("{line_break}{entry}\n").as_bytes())
    });
    written.map_err(|error| format!("cannot write {}: {error}; the line is: {entry}", path.display()))
}

/// Whether a line can be added to the record in a file: worth knowing before a search of hours.
///
/// # Errors
///
/// The file cannot be opened, or is not a record; the message names it.
pub fn check(path: &Path) -> Result<(), String> {
    let (_, text) = open(path).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    read(&text).map(drop).map_err(|why| format!("{} is not a record: {why}; nothing was run", path.display()))
}

/// Opens a record to add to it, with what it holds.
fn open(path: &Path) -> io::Result<(File, String)> {
    let mut file = File::options().create(true).read(true).append(true).open(path)?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok((file, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_back_as_they_were_written() {
        let record = "seeds\tabc\tclient\t5\t100\t0\nplain seeds\tabc+\thttp\t5\t100\t2\t3100\n\
            explore\tabc\t12\t600\t1\tfull\nfuzz\tabc\tsse\t60\t?\tfuzz/artifacts/x\n";
        let entries = read(&format!("# a comment\n\n{record}")).unwrap();
        let written: Vec<String> = entries.iter().map(Entry::to_string).collect();
        assert_eq!(written, record.lines().collect::<Vec<_>>());
        assert!(matches!(entries[1], Entry::Seeds { plain: true, rate: Some(3100), .. }), "{entries:?}");
        let Ok(Entry::Explore { full, .. }) = entry("explore\tabc\t12\t600\t1") else { panic!("without a size") };
        assert!(!full);
    }

    #[test]
    fn a_line_is_added_only_to_a_record_and_on_a_line_of_its_own() {
        let path = std::env::temp_dir().join(format!("steadfast-sim-{}-record", std::process::id()));
        let entry = entry("fuzz\tabc\tsse\t60\t?\t0").unwrap();
        std::fs::write(&path, "# without a line break").unwrap();
        assert_eq!((check(&path), append(&path, &entry)), (Ok(()), Ok(())));
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, "rubbish").unwrap();
        let refused = check(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text, format!("# without a line break\n{entry}\n"));
        assert!(refused.is_err_and(|why| why.contains("line 1") && why.contains("nothing was run")));
    }

    #[test]
    fn a_malformed_line_is_an_error_that_names_it() {
        for (record, why) in [
            ("# x\nseeds\tabc\tclient\t5\tmany\t0", "line 2: `many` is not a number: seeds"),
            ("seeds\tabc\tmoon\t5\t1\t0", "line 1: `moon` is not a world"),
            ("seeds\tabc\tclient\t5\t1", "line 1: unknown kind, or wrong number of fields"),
            ("explore\tabc\t12\t600\t-1", "`-1` is not a number"),
            ("fuzz\tabc\tsse\t60\t12 \t0", "`12 ` is not a number"),
            ("sweeps\tabc", "unknown kind"),
        ] {
            let error = read(record).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn an_error_of_the_file_names_it_and_the_line_that_is_missing() {
        let entry = entry("seeds\tabc\tclient\t5\t100\t0").unwrap();
        let error = append(Path::new("/nowhere/record.tsv"), &entry).unwrap_err();
        assert!(
            error.starts_with("cannot write /nowhere/record.tsv: ") && error.ends_with("client\t5\t100\t0"),
            "{error}"
        );
    }
}
