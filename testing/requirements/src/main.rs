//! Prints where we stand with the specification's demands.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use requirements::manifest::{self, Manifest};
use requirements::{features, report, root, words};
use steadfast_model::Revision;

const USAGE: &str = "\
Prints where we stand with what the specification demands of a server and of a client.

Usage: requirements [open | count CHECKOUT | features]

  open             what is open, with what is missing
  count CHECKOUT   counts the normative words again in a checkout of the specification, and compares
  features         writes docs/features.md from the table of methods";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [] => print!("{}", report::tables(&manifest::load())),
        ["open"] => print!("{}", report::open(&manifest::load())),
        ["count", checkout] => return recount(&manifest::load(), Path::new(checkout)),
        ["features"] => {
            if let Err(error) = fs::write(root().join(features::DOCUMENT), features::document()) {
                eprintln!("{}: {error}", features::DOCUMENT);
                return ExitCode::FAILURE;
            }
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// Compares the counts that the manifest was written against with those of a checkout.
fn recount(manifests: &[Manifest], checkout: &Path) -> ExitCode {
    let mut differ = false;
    for page in manifests.iter().flat_map(|manifest| &manifest.pages) {
        let file = checkout.join(page.file());
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) => {
                println!("{}: {error}", file.display());
                differ = true;
                continue;
            }
        };
        let now = words::count_without(&text, &later_lines(checkout, page.revision));
        let headings: BTreeSet<&String> = now.keys().chain(page.words.keys()).collect();
        for heading in headings {
            let (then, now) = (page.words.get(heading).unwrap_or(&0), now.get(heading).unwrap_or(&0));
            if then != now {
                println!("{} {}#{heading}: {then} in the manifest, {now} in the page", page.revision, page.path);
                differ = true;
            }
        }
    }
    if differ {
        return ExitCode::FAILURE;
    }
    println!("every page has the words that the manifest was written against");
    ExitCode::SUCCESS
}

/// The lines that later revisions share with an older one: entries of those cover them. The two newest are covered whole.
fn later_lines(checkout: &Path, revision: Revision) -> BTreeSet<String> {
    if revision >= Revision::LATEST_STATEFUL {
        return BTreeSet::new();
    }
    let later = Revision::ALL.iter().copied().filter(|later| *later > revision);
    let folders = later.map(|later| checkout.join("docs/specification").join(later.as_str()));
    folders.flat_map(pages_below).flat_map(|page| words::lines(&page).collect::<Vec<_>>()).collect()
}

fn pages_below(folder: PathBuf) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    let below =
        |path: PathBuf| if path.is_dir() { pages_below(path) } else { fs::read_to_string(path).into_iter().collect() };
    entries.flat_map(below).collect()
}
