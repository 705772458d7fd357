//! The tables of `docs/proof.md` are those of the record.

use sim::proof::renew;

#[test]
fn the_tables_of_the_document_are_those_of_the_record() {
    let document = include_str!("../../../docs/proof.md");
    let record = include_str!("../../record.tsv");
    let renewed = renew("docs/proof.md", document, record).unwrap_or_else(|error| panic!("{error}"));
    assert!(renewed == document, "docs/proof.md is not up to date: cargo run --release -p sim -- proof");
}
