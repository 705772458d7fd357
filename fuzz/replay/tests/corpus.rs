//! Every input of the corpus still does what its target promises.

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use steadfast_model::Method;

fn replay(name: &str) {
    let (_, target) = fuzz_targets::TARGETS.iter().find(|(known, _)| *known == name).expect("a target of that name");
    let inputs = inputs(name);
    assert!(!inputs.is_empty(), "the corpus of {name} is empty");
    let fails = |path: &PathBuf| {
        let bytes = fs::read(path).expect("an input that can be read");
        // What a panic says stands in the output before the list.
        catch_unwind(|| target(&bytes)).is_err()
    };
    let failed: Vec<PathBuf> = inputs.into_iter().filter(fails).collect();
    assert!(failed.is_empty(), "these inputs break a promise: {failed:#?}");
}

fn inputs(name: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry of the corpus").path()).collect();
    paths.sort();
    paths
}

#[test]
fn line() {
    replay("line");
}

#[test]
fn envelope() {
    replay("envelope");
}

#[test]
fn message() {
    replay("message");
}

#[test]
fn connection() {
    replay("connection");
}

#[test]
fn every_method_of_the_table_is_read() {
    assert!(fuzz_targets::message::methods().eq(Method::ALL.iter().copied()), "the target message misses a method");
}

#[test]
fn sse() {
    replay("sse");
}

#[test]
fn http_headers() {
    replay("http_headers");
}

#[test]
fn resume() {
    replay("resume");
}
