//! Finds the tests that exist, by the names that `cargo test` prints, with the crate in front.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The folders whose members have tests.
const FOLDERS: &[&str] = &["crates", "testing"];

/// Every test of the repository: `steadfast_proto::connection::tests::an_answer_ends_a_request_once`, or
/// `faults::cancellation/twice` for a check of the fault table.
pub fn tests(root: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for folder in FOLDERS {
        for member in folders_of(&root.join(folder)) {
            let name = member.file_name().unwrap_or_default().to_string_lossy().replace('-', "_");
            for part in ["src", "tests"] {
                walk(&member.join(part), &name, &mut found);
            }
        }
    }
    for row in faults::table() {
        found.extend(row.checks.iter().map(|check| format!("faults::{}/{}", row.name, check.name)));
    }
    found
}

fn folders_of(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

fn walk(folder: &Path, module: &str, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let inner = format!("{module}::{name}");
        if path.is_dir() {
            walk(&path, &inner, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let is_root = matches!(name.as_str(), "mod" | "lib" | "main");
            let text = fs::read_to_string(&path).unwrap_or_default();
            tests_of(&text, if is_root { module } else { &inner }, found);
        }
    }
}

/// The tests of one file, which rustfmt has laid out: a test belongs to the modules that are indented less.
fn tests_of(text: &str, module: &str, found: &mut BTreeSet<String>) {
    let mut modules: Vec<(usize, &str)> = Vec::new();
    let mut marked = false;
    for line in text.lines() {
        let code = line.trim_start();
        let depth = line.len() - code.len();
        if let Some(name) = named(code, "mod ").filter(|_| code.ends_with('{')) {
            modules.retain(|&(outer, _)| outer < depth);
            modules.push((depth, name));
        } else if code.starts_with("#[test]") || code.starts_with("#[tokio::test") {
            marked = true;
        } else if let Some(name) = named(code, "fn ").filter(|_| marked) {
            let path = modules.iter().filter(|&&(outer, _)| outer < depth).map(|&(_, name)| name);
            let path: Vec<&str> = std::iter::once(module).chain(path).chain([name]).collect();
            found.insert(path.join("::"));
            marked = false;
        } else if !code.starts_with('#') && !code.starts_with("//") {
            marked = false;
        }
    }
}

/// The name after a keyword, whatever stands before it on the line.
fn named<'a>(code: &'a str, keyword: &str) -> Option<&'a str> {
    let qualifiers = ["pub ", "pub(crate) ", "pub(super) ", "async "];
    let mut code = code;
    while let Some(rest) = qualifiers.iter().find_map(|qualifier| code.strip_prefix(qualifier)) {
        code = rest;
    }
    let rest = code.strip_prefix(keyword)?;
    rest.split(|character: char| !character.is_alphanumeric() && character != '_').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_have_the_path_of_their_file_and_modules() {
        let text = "\
fn helper() {}
#[test]
fn outer() {}
mod tests {
    #[tokio::test(flavor = \"multi_thread\")]
    #[should_panic]
    async fn inner() {}
    fn neither() {}
}
#[test]
fn last() {}";
        let mut found = BTreeSet::new();
        tests_of(text, "a::b", &mut found);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["a::b::last", "a::b::outer", "a::b::tests::inner"]);
    }

    #[test]
    fn an_attribute_of_something_else_marks_nothing() {
        let mut found = BTreeSet::new();
        tests_of("#[test]\nuse x;\nfn plain() {}", "a", &mut found);
        assert!(found.is_empty());
    }
}
