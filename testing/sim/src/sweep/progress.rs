//! The state of a sweep in a file, so that it can be interrupted at any time and taken up again.
//!
//! The file names the build of the simulator: results of two builds are never put together.

use std::hash::Hasher;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Finding, Results, Sweep};
use crate::coverage::Coverage;
use crate::law::{Law, Violation};
use crate::seed::Seed;
use crate::trace::Mix;
use crate::worlds::{Counts, Shrunk};

/// How often the file is written.
const INTERVAL: Duration = Duration::from_secs(2);

/// Keeps the state of one sweep in a file.
pub struct ProgressFile {
    path: PathBuf,
    identity: Value,
    written: Option<Instant>,
}

impl ProgressFile {
    /// The file of a sweep, and how far it had come.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is that of another sweep or another build.
    pub fn open(path: &Path, sweep: &Sweep) -> io::Result<(Self, Results)> {
        let identity = json!({
            "build": format!("{:016x}", build()?),
            "world": sweep.world.name(),
            "start": sweep.start,
            "seeds": sweep.seeds,
            "plain": sweep.plain,
        });
        let progress = match std::fs::read(path) {
            Ok(bytes) => {
                let state: Value = serde_json::from_slice(&bytes).map_err(io::Error::other)?;
                if state["sweep"] != identity {
                    let (path, found) = (path.display(), &state["sweep"]);
                    let message = format!(
                        "{path} is of another sweep, {found}; this one is {identity}: remove the file to begin again"
                    );
                    return Err(io::Error::new(io::ErrorKind::InvalidData, message));
                }
                read(&state).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not a state of a sweep"))?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Results::default(),
            Err(error) => return Err(error),
        };
        Ok((Self { path: path.to_owned(), identity, written: None }, progress))
    }

    /// Writes the state, if it was not written just now.
    pub fn write_if_due(&mut self, progress: &Results) -> io::Result<()> {
        if self.written.is_some_and(|written| written.elapsed() < INTERVAL) {
            return Ok(());
        }
        self.write(progress)
    }

    /// Writes the state.
    pub fn write(&mut self, progress: &Results) -> io::Result<()> {
        self.written = Some(Instant::now());
        let mut state = write(progress);
        state["sweep"] = self.identity.clone();
        let mut temporary = self.path.clone().into_os_string();
        temporary.push(format!(".{}.new", std::process::id()));
        std::fs::write(&temporary, state.to_string())?;
        std::fs::rename(&temporary, &self.path)
    }
}

/// A hash of this program.
fn build() -> io::Result<u64> {
    let mut hash = Mix::default();
    hash.write(&std::fs::read(std::env::current_exe()?)?);
    Ok(hash.finish())
}

fn write(progress: &Results) -> Value {
    let Counts { requests, cancels, closes, messages, trace } = progress.counts;
    let findings: Vec<Value> = progress.findings.iter().map(write_finding).collect();
    json!({
        "done": progress.done,
        "counts": [requests, cancels, closes, messages, trace],
        "coverage": progress.coverage.0,
        "findings": findings,
        "busy": u64::try_from(progress.busy.as_micros()).unwrap_or(u64::MAX),
    })
}

fn write_finding(finding: &Finding) -> Value {
    let violation = |violation: &Violation| json!([violation.law.to_string(), violation.what]);
    let shrunk = finding
        .shrunk
        .as_ref()
        .map(|shrunk| json!({ "violation": violation(&shrunk.violation), "steps": shrunk.steps, "text": shrunk.text }));
    json!({
        "seed": finding.seed.number,
        "plain": finding.seed.plain,
        "violation": violation(&finding.violation),
        "shrunk": shrunk,
    })
}

fn read(state: &Value) -> Option<Results> {
    let counts: Vec<u64> = state["counts"].as_array()?.iter().map(Value::as_u64).collect::<Option<_>>()?;
    let [requests, cancels, closes, messages, trace] = counts[..] else { return None };
    let coverage = state["coverage"].as_object()?;
    let coverage = coverage.iter().map(|(name, count)| Some((name.clone(), count.as_u64()?))).collect::<Option<_>>()?;
    Some(Results {
        done: state["done"].as_u64()?,
        counts: Counts { requests, cancels, closes, messages, trace },
        coverage: Coverage(coverage),
        findings: state["findings"].as_array()?.iter().map(read_finding).collect::<Option<_>>()?,
        busy: Duration::from_micros(state["busy"].as_u64()?),
    })
}

fn read_finding(finding: &Value) -> Option<Finding> {
    let violation = |value: &Value| {
        let name = value[0].as_str()?;
        let law = Law::ALL.iter().copied().find(|law| law.to_string() == name)?;
        Some(Violation { law, what: value[1].as_str()?.to_owned() })
    };
    let shrunk = match &finding["shrunk"] {
        Value::Null => None,
        shrunk => Some(Shrunk {
            violation: violation(&shrunk["violation"])?,
            steps: shrunk["steps"]
                .as_array()?
                .iter()
                .map(|step| Some(step.as_str()?.to_owned()))
                .collect::<Option<_>>()?,
            text: shrunk["text"].as_str()?.to_owned(),
        }),
    };
    let seed = Seed { number: finding["seed"].as_u64()?, plain: finding["plain"].as_bool()? };
    Some(Finding { seed, violation: violation(&finding["violation"])?, shrunk })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::worlds::World;

    const SWEEP: Sweep = Sweep { world: World::Cores, start: 3, seeds: 10, plain: true };

    fn progress() -> Results {
        let violation = Violation { law: Law::Order, what: "too early".to_owned() };
        let shrunk = Shrunk { violation: violation.clone(), steps: vec!["Call".to_owned()], text: "a\nb".to_owned() };
        let findings = vec![Finding { seed: Seed::plain(4), violation, shrunk: Some(shrunk) }];
        Results {
            done: 5,
            counts: Counts { requests: 1, cancels: 2, closes: 3, messages: 4, trace: u64::MAX },
            coverage: Coverage(BTreeMap::from([("core / x".to_owned(), 7)])),
            findings,
            busy: Duration::from_micros(9),
        }
    }

    #[test]
    fn a_state_is_read_back_as_it_was_written() {
        let path = std::env::temp_dir().join(format!("steadfast-sim-{}-state", std::process::id()));
        let (mut file, before) = ProgressFile::open(&path, &SWEEP).unwrap();
        assert_eq!(before.done, 0);
        file.write(&progress()).unwrap();
        let (_, after) = ProgressFile::open(&path, &SWEEP).unwrap();
        let other = ProgressFile::open(&path, &Sweep { start: 4, ..SWEEP }).map(drop);
        std::fs::remove_file(&path).unwrap();
        let Results { done, counts, coverage, findings, busy } = progress();
        assert_eq!((after.done, after.counts, after.coverage), (done, counts, coverage));
        assert_eq!((after.findings, after.busy), (findings, busy));
        assert!(other.unwrap_err().to_string().contains("another sweep"));
    }
}
