//! References in the documents are valid: the targets of links, names and files in backticks, and the tests that docs/wire.md
//! lists.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

const DOCUMENTS: &[&str] =
    &["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/architecture.md", "docs/features.md", "docs/wire.md"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the root of the repository").to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every text between `open` and `close`.
fn between<'a>(text: &'a str, open: &str, close: char) -> Vec<&'a str> {
    text.split(open).skip(1).filter_map(|rest| rest.split(close).next()).collect()
}

/// All Rust source under a folder.
fn sources(folder: &Path, into: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder that can be read") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push_str(&read(&path));
        }
    }
}

#[test]
fn link_targets_exist() {
    for document in DOCUMENTS {
        let path = root().join(document);
        let folder = path.parent().expect("a document is in a folder");
        for link in between(&read(&path), "](", ')') {
            let file = link.split('#').next().unwrap_or_default();
            let elsewhere = link.starts_with("https://");
            assert!(elsewhere || folder.join(file).exists(), "{document} links to {link}, which is not there");
        }
    }
}

/// All files under a folder, with the folder.
fn files(folder: &Path, into: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder that can be read") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            files(&path, into);
        } else {
            into.push(path.display().to_string());
        }
    }
}

/// What stands in backticks, outside of blocks of code.
fn code_spans(document: &str) -> impl Iterator<Item = &str> {
    let text = document.split("```").step_by(2);
    text.flat_map(|text| text.split('`').skip(1).step_by(2))
}

#[test]
fn names_and_files_in_backticks_exist() {
    let (mut code, mut paths) = (String::new(), Vec::new());
    for folder in ["crates", "examples", "testing", "xtask", "benches", "fuzz"] {
        sources(&root().join(folder), &mut code);
        files(&root().join(folder), &mut paths);
    }
    let is_word = |text: &str| text.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    let words: HashSet<&str> = code.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
    let mut checked = 0;
    for document in DOCUMENTS {
        for span in code_spans(&read(&root().join(document))) {
            let is_rust = Path::new(span).extension().is_some_and(|extension| extension == "rs");
            let is_path = is_rust && !span.contains([' ', '*', '{']);
            let is_member =
                span.contains("::") && span.split("::").all(is_word) && span.starts_with(char::is_uppercase);
            if is_path {
                // Some paths are written with the name of their crate.
                let below = span.strip_prefix("model/").or(span.strip_prefix("proto/"));
                let path = format!("/{}", below.unwrap_or(span));
                assert!(paths.iter().any(|file| file.ends_with(&path)), "{document} names the file `{span}`");
            } else if is_member {
                assert!(span.split("::").all(|word| words.contains(word)), "{document} names `{span}`");
            }
            checked += usize::from(is_path || is_member);
        }
    }
    assert!(checked > 100, "only {checked} were found");
}

#[test]
fn the_tests_that_show_our_decisions_exist() {
    let mut code = String::new();
    for folder in ["crates", "testing"] {
        sources(&root().join(folder), &mut code);
    }
    let document = read(&root().join("docs/wire.md"));
    let rows = document.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| decision"));
    let mut named = 0;
    for row in rows {
        let shown_by = row.rsplit(" | ").next().unwrap_or_default();
        for (number, name) in shown_by.split('`').enumerate() {
            let is_code = number % 2 == 1;
            let is_path = name.contains('.');
            if is_code && !is_path {
                named += 1;
                // A test, a row of the fault table, or a row and its check.
                let exists = name
                    .split('/')
                    .all(|part| code.contains(&format!("fn {part}(")) || code.contains(&format!("\"{part}\"")));
                assert!(exists, "docs/wire.md names `{name}`, which does not exist");
            }
        }
    }
    assert!(named > 50, "only {named} tests are named");
}
