//! The state of a run in a file, so that it can be interrupted at any time and resumed.
//!
//! One file holds the sweeps of all worlds of a run. How many seeds to run is not part of it: a sweep of a million seeds can be
//! extended to three. The build of the simulator is: results of two builds are never put together.

use std::hash::Hasher;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::{COMMIT, Finding, Results};
use crate::coverage::Coverage;
use crate::law::{Law, Violation};
use crate::observation::trace::FnvHasher;
use crate::seed::Seed;
use crate::worlds::{Counts, Shrunk, World};

/// How often the file is written.
const INTERVAL: Duration = Duration::from_secs(2);

/// Keeps the state of a run in a file.
pub struct ProgressFile {
    path: PathBuf,
    identity: Value,
    worlds: Map<String, Value>,
    written: Option<Instant>,
}

impl ProgressFile {
    /// Opens the file of a run that begins at this seed, with scripts that are biased or not.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is malformed, or belongs to a different run or build.
    pub fn open(path: &Path, start: u64, plain: bool) -> io::Result<Self> {
        let identity = json!({ "build": build()?, "commit": COMMIT, "start": start, "plain": plain });
        let mut file = Self { path: path.to_owned(), identity, worlds: Map::new(), written: None };
        // What a run left that was interrupted while it wrote.
        match std::fs::remove_file(file.temporary()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(about(&file.temporary(), error)),
            _ => {}
        }
        match std::fs::read(path) {
            Ok(bytes) => file.load(&bytes)?,
            // Found out now, and not when a world of hours is done.
            Err(error) if error.kind() == io::ErrorKind::NotFound => file.replace()?,
            Err(error) => return Err(about(path, error)),
        }
        Ok(file)
    }

    fn load(&mut self, bytes: &[u8]) -> io::Result<()> {
        let path = self.path.display();
        let malformed = |why: String| {
            let message = format!("malformed progress file {path}: {why}; remove it to begin again");
            io::Error::new(io::ErrorKind::InvalidData, message)
        };
        let mut state: Value = serde_json::from_slice(bytes).map_err(|error| malformed(error.to_string()))?;
        let found = &state["sweep"];
        if *found != self.identity {
            let message = format!(
                "{path} belongs to a different sweep (start, bias or build): it is of {found}, and this one is {}; \
                 remove it to begin again, or name another file",
                self.identity
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let Value::Object(worlds) = state["worlds"].take() else { return Err(malformed("no worlds".to_owned())) };
        for (name, state) in &worlds {
            if World::by_name(name).is_none() || read(state).is_none() {
                return Err(malformed(format!("the state of `{name}`")));
            }
        }
        self.worlds = worlds;
        Ok(())
    }

    /// How far the sweep of a world had come.
    pub fn results(&self, world: World) -> Results {
        self.worlds.get(world.name()).and_then(read).unwrap_or_default()
    }

    /// Writes the state, if it was not written just now.
    pub fn write_if_due(&mut self, world: World, results: &Results) -> io::Result<()> {
        if self.written.is_some_and(|written| written.elapsed() < INTERVAL) {
            return Ok(());
        }
        self.write(world, results)
    }

    /// Writes the state. A crash at any moment leaves the old state or the new one.
    pub fn write(&mut self, world: World, results: &Results) -> io::Result<()> {
        self.written = Some(Instant::now());
        self.worlds.insert(world.name().to_owned(), write(results));
        self.replace()
    }

    fn replace(&self) -> io::Result<()> {
        let state = json!({ "sweep": self.identity, "worlds": self.worlds }).to_string();
        let temporary = self.temporary();
        let replace = || {
            let mut file = std::fs::File::create(&temporary)?;
            file.write_all(state.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&temporary, &self.path)
        };
        replace().map_err(|error| about(&self.path, error))
    }

    fn temporary(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".new");
        name.into()
    }
}

fn about(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("progress file {}: {error}", path.display()))
}

/// A hash of this program.
fn build() -> io::Result<String> {
    let mut hash = FnvHasher::default();
    let program = std::env::current_exe()?;
    hash.write(&std::fs::read(&program).map_err(|error| about(&program, error))?);
    Ok(format!("{:016x}", hash.finish()))
}

fn write(results: &Results) -> Value {
    let Counts { requests, cancels, closes, messages, trace } = results.counts;
    let findings: Vec<Value> = results.findings.iter().map(write_finding).collect();
    json!({
        "done": results.done,
        "recorded": results.recorded,
        "counts": [requests, cancels, closes, messages, trace],
        "coverage": results.coverage.0,
        "findings": findings,
        "busy": u64::try_from(results.busy.as_micros()).unwrap_or(u64::MAX),
    })
}

fn write_finding(finding: &Finding) -> Value {
    let violation = |violation: &Violation| json!([violation.law.to_string(), violation.what]);
    let shrunk = finding.shrunk.as_ref();
    json!({
        "seed": finding.seed.number,
        "plain": finding.seed.plain,
        "violation": violation(&finding.violation),
        "shrunk": shrunk.map(|small| json!([violation(&small.violation), small.steps, small.text])),
    })
}

fn read(state: &Value) -> Option<Results> {
    let counts: Vec<u64> = state["counts"].as_array()?.iter().map(Value::as_u64).collect::<Option<_>>()?;
    let [requests, cancels, closes, messages, trace] = counts[..] else { return None };
    let coverage = state["coverage"].as_object()?;
    let coverage = coverage.iter().map(|(name, count)| Some((name.clone(), count.as_u64()?))).collect::<Option<_>>()?;
    Some(Results {
        done: state["done"].as_u64()?,
        recorded: state["recorded"].as_u64()?,
        counts: Counts { requests, cancels, closes, messages, trace },
        coverage: Coverage(coverage),
        findings: state["findings"].as_array()?.iter().map(read_finding).collect::<Option<_>>()?,
        busy: Duration::from_micros(state["busy"].as_u64()?),
    })
}

fn read_finding(finding: &Value) -> Option<Finding> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let violation = |value: &Value| {
        let name = value[0].as_str()?;
        let law = Law::ALL.iter().copied().find(|law| law.to_string() == name)?;
        Some(Violation { law, what: text(&value[1])? })
    };
    let shrunk = match &finding["shrunk"] {
        Value::Null => None,
        small => Some(Shrunk {
            violation: violation(&small[0])?,
            steps: small[1].as_array()?.iter().map(text).collect::<Option<_>>()?,
            text: text(&small[2])?,
        }),
    };
    let seed = Seed { number: finding["seed"].as_u64()?, plain: finding["plain"].as_bool()? };
    Some(Finding { seed, violation: violation(&finding["violation"])?, shrunk })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn results(done: u64) -> Results {
        let violation = Violation { law: Law::Order, what: "too early".to_owned() };
        let shrunk = Shrunk { violation: violation.clone(), steps: vec!["Call".to_owned()], text: "a\nb".to_owned() };
        let finding = |number, shrunk| Finding { seed: Seed::plain(number), violation: violation.clone(), shrunk };
        Results {
            done,
            recorded: 2,
            counts: Counts { requests: 1, cancels: 2, closes: 3, messages: 4, trace: u64::MAX },
            coverage: Coverage(BTreeMap::from([("core / x".to_owned(), 7)])),
            findings: vec![finding(4, Some(shrunk)), finding(5, None)],
            busy: Duration::from_micros(9),
        }
    }

    /// A path that is removed again.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("steadfast-sim-{}-{name}", std::process::id())))
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn error(path: &Path, start: u64) -> String {
        ProgressFile::open(path, start, true).map(drop).unwrap_err().to_string()
    }

    #[test]
    fn the_state_of_each_world_is_read_back_as_it_was_written() {
        let scratch = Scratch::new("state");
        let mut file = ProgressFile::open(&scratch.0, 3, true).unwrap();
        assert_eq!(file.results(World::Cores), Results::default());
        file.write(World::Cores, &results(5)).unwrap();
        file.write(World::Http, &results(6)).unwrap();
        let file = ProgressFile::open(&scratch.0, 3, true).unwrap();
        assert_eq!((file.results(World::Cores), file.results(World::Http)), (results(5), results(6)));
        assert_eq!(file.results(World::Client), Results::default());
        assert!(!file.temporary().exists());
    }

    #[test]
    fn the_file_of_a_different_sweep_is_refused() {
        let scratch = Scratch::new("other");
        ProgressFile::open(&scratch.0, 3, true).unwrap().write(World::Cores, &results(5)).unwrap();
        let error = error(&scratch.0, 4);
        assert!(error.contains("belongs to a different sweep") && error.contains("remove it"), "{error}");
        assert!(error.starts_with(&*scratch.0.to_string_lossy()), "{error}");
    }

    #[test]
    fn a_file_that_was_cut_off_is_refused_and_one_that_was_not_finished_is_removed() {
        let scratch = Scratch::new("cut");
        let mut file = ProgressFile::open(&scratch.0, 3, true).unwrap();
        file.write(World::Cores, &results(5)).unwrap();
        let whole = std::fs::read(&scratch.0).unwrap();
        std::fs::write(file.temporary(), &whole[..9]).unwrap();
        assert_eq!(ProgressFile::open(&scratch.0, 3, true).unwrap().results(World::Cores), results(5));
        assert!(!file.temporary().exists());
        for cut in [0, 1, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&scratch.0, &whole[..cut]).unwrap();
            let error = error(&scratch.0, 3);
            let path = scratch.0.display();
            assert!(error.starts_with(&format!("malformed progress file {path}: ")), "{error}");
            assert!(error.ends_with("remove it to begin again"), "{error}");
        }
    }
}
