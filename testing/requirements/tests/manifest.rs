//! The manifest holds together, and the document that is made from the table of methods is what it would be now.

use std::fs;

use requirements::{check, features, manifest, root, sources};

#[test]
fn every_demand_is_accounted_for_and_every_named_test_exists() {
    let problems = check::problems(&manifest::load(), &sources::tests(&root()));
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn the_tests_of_every_crate_are_found() {
    let tests = sources::tests(&root());
    for known in [
        "steadfast_proto::connection::tests::an_answer_ends_a_request_once",
        "steadfast_model::method::tests::a_stateless_server_sends_no_requests",
        "steadfast::shell::server::handlers::a_tool_is_listed_and_called",
        "faults::cancellation/twice",
        "requirements::manifest::the_tests_of_every_crate_are_found",
    ] {
        assert!(tests.contains(known), "{known}");
    }
}

#[test]
fn the_table_of_methods_is_up_to_date() {
    let written = fs::read_to_string(root().join(features::DOCUMENT)).unwrap_or_default();
    assert_eq!(written, features::document(), "run `cargo run -p requirements -- features`");
}
