//! Names the commit that the simulator is built from, as `SIM_COMMIT`, for the record of what was run.

use std::path::Path;
use std::process::Command;

/// What decides how the simulator behaves: changes here that are not committed make the commit's name incomplete.
const SOURCES: [&str; 4] = ["crates", "testing/sim", "Cargo.toml", "Cargo.lock"];

fn main() {
    // Asked for at run time: two clones with one target folder share this program, and `env!` would be the folder of the first.
    let package = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it for build scripts");
    let root = &*format!("{package}/../..");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={root}/{source}");
    }
    // These change with each commit and each checkout.
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(root, &["rev-parse", "--git-path", file]).map(|path| Path::new(root).join(path));
        if let Some(path) = path.filter(|path| path.exists()) {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    println!("cargo::rustc-env=SIM_COMMIT={}", commit(root).unwrap_or_else(|| "unknown".to_owned()));
}

/// The commit, with a `+` if there are changes that are not in it. `None` outside of a git repository.
fn commit(root: &str) -> Option<String> {
    let commit = git(root, &["rev-parse", "--short", "HEAD"])?;
    let changes = git(root, &[&["status", "--porcelain", "--"], &SOURCES[..]].concat())?;
    Some(if changes.is_empty() { commit } else { format!("{commit}+") })
}

fn git(root: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(["--no-optional-locks", "-C", root]).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
