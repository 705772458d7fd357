//! The document about the proof says what was recorded.

use sim::proof::renew;

#[test]
fn the_tables_of_the_document_are_those_of_the_record() {
    let document = include_str!("../../../docs/proof.md");
    let record = include_str!("../../record.tsv");
    let renewed = renew(document, record).expect("the document has a place for the tables");
    assert!(renewed == document, "docs/proof.md is not up to date: cargo run --release -p sim -- proof");
}
