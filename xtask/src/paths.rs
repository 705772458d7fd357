//! Paths of the project: its root, and the folders of the conformance suite and of the benches.

use std::path::{Path, PathBuf};

/// The root of the project.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Where the conformance suite is installed and leaves its results. Nothing in it is kept in version control.
pub(crate) fn conformance() -> PathBuf {
    target().join("conformance")
}

/// Where the benches leave what they measured, and where peers from other languages are installed. Nothing in it is
/// kept in version control.
pub(crate) fn bench() -> PathBuf {
    target().join("bench")
}

fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    // A relative one is relative to the root, as far as this command is concerned.
    root().join(target)
}
