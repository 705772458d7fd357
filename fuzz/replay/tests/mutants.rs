//! The target `connection` and its corpus find what they are there to find: every fault of the core that the build with
//! `--cfg mutants` can switch on breaks a promise for at least one input of the corpus.
//!
//! `RUSTFLAGS="--cfg mutants" cargo test --manifest-path fuzz/replay/Cargo.toml`
#![cfg(mutants)]

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

use steadfast_proto::mutant::{self, Mutant};

#[test]
fn every_fault_of_the_core_is_found() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/connection");
    let entries = fs::read_dir(folder).expect("the corpus");
    let inputs: Vec<Vec<u8>> =
        entries.map(|entry| fs::read(entry.expect("an entry").path()).expect("an input that can be read")).collect();
    // The others are faults of the shell, which is not here.
    let of_the_core = |mutant: &&Mutant| !Mutant::AROUND.contains(mutant);
    let found = |mutant: &&Mutant| {
        let breaks =
            |bytes: &Vec<u8>| catch_unwind(|| mutant::with(**mutant, || fuzz_targets::connection::run(bytes))).is_err();
        inputs.iter().filter(|bytes| breaks(bytes)).count() > 0
    };
    let missed: Vec<&Mutant> = Mutant::ALL.iter().filter(of_the_core).filter(|mutant| !found(mutant)).collect();
    assert!(missed.is_empty(), "faults that no input finds: {missed:?}");
}
