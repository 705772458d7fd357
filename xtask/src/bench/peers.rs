//! Servers on the official SDKs for Python and TypeScript, which take part in the stdio bench.
//!
//! They are installed under `target`, never on the machine. One that cannot be installed is left out, with a sentence
//! that says why.

use std::path::Path;
use std::time::Duration;

use tokio::process::Command;

use crate::failure::{Context, Failure, Outcome};
use crate::{npm, paths, process};

const PYTHON_PACKAGE: &str = "mcp";
const PYTHON_VERSION: &str = "1.27.2";
const TYPESCRIPT_PACKAGE: &str = "@modelcontextprotocol/sdk";
const TYPESCRIPT_VERSION: &str = "1.32.2";

const INSTALLING: Duration = Duration::from_secs(10 * 60);
const ASKING: Duration = Duration::from_secs(60);

/// A server on an SDK in another language.
#[derive(Debug)]
pub(crate) struct Peer {
    /// What the bench calls it.
    pub(crate) name: &'static str,
    /// The package that it is on, with its version.
    pub(crate) version: String,
    /// The program and its argument, with a space between them.
    command_line: String,
}

impl Peer {
    /// The arguments that have the stdio bench measure it too.
    pub(crate) fn arguments(&self) -> [String; 2] {
        ["--peer".to_owned(), format!("{}={}", self.name, self.command_line)]
    }
}

/// Those that can be installed.
pub(crate) async fn installed() -> Vec<Peer> {
    let folder = paths::bench().join("peers");
    let mut peers = Vec::new();
    for (name, peer) in [("python", python(&folder).await), ("typescript", typescript(&folder).await)] {
        match peer {
            Ok(peer) => peers.push(peer),
            Err(failure) => eprintln!("bench: the peer {name} is left out, because it cannot be installed: {failure}"),
        }
    }
    peers
}

async fn python(folder: &Path) -> Outcome<Peer> {
    let environment = folder.join("venv");
    let python = environment.join("bin/python");
    let script = paths::root().join("benches/peers/server.py");
    let version = format!("import importlib.metadata as m; print(m.version('{PYTHON_PACKAGE}'))");
    let installed = process::run(Command::new(&python).arg("-c").arg(version), ASKING).await;
    if !installed.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim() == PYTHON_VERSION) {
        eprintln!("bench: installing {PYTHON_PACKAGE} {PYTHON_VERSION} into {}", environment.display());
        let mut create = Command::new("python3");
        process::run_checked(create.args(["-m", "venv", "--clear"]).arg(&environment), INSTALLING).await?;
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        install.arg(format!("{PYTHON_PACKAGE}=={PYTHON_VERSION}"));
        process::run_checked(&mut install, INSTALLING).await?;
    }
    let version = format!("{PYTHON_PACKAGE} {PYTHON_VERSION}");
    Ok(Peer { name: "python", version, command_line: command_line(&python, &script)? })
}

async fn typescript(folder: &Path) -> Outcome<Peer> {
    let node = Path::new("node");
    process::run_checked(Command::new(node).arg("--version"), ASKING).await?;
    let manifest = folder.join("node_modules").join(TYPESCRIPT_PACKAGE).join("package.json");
    let manifest = std::fs::read(manifest).unwrap_or_default();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap_or_default();
    if manifest.get("version").is_none_or(|version| version != TYPESCRIPT_VERSION) {
        eprintln!("bench: installing {TYPESCRIPT_PACKAGE} {TYPESCRIPT_VERSION} into {}", folder.display());
        npm::install(folder, &[format!("{TYPESCRIPT_PACKAGE}@{TYPESCRIPT_VERSION}")], &[]).await?;
    }
    // Node looks for packages in the folders above a script.
    let (source, script) = (paths::root().join("benches/peers/server.mjs"), folder.join("server.mjs"));
    std::fs::copy(&source, &script).context(|| format!("copying {}", source.display()))?;
    let version = format!("{TYPESCRIPT_PACKAGE} {TYPESCRIPT_VERSION}");
    Ok(Peer { name: "typescript", version, command_line: command_line(node, &script)? })
}

/// The program and its argument in one line. The bench splits the line at spaces, so neither may have one.
fn command_line(program: &Path, script: &Path) -> Outcome<String> {
    let words = [program, script].map(|path| path.to_string_lossy().into_owned());
    match words.iter().find(|word| word.contains(char::is_whitespace)) {
        None => Ok(words.join(" ")),
        Some(path) => Err(Failure::new(format!("the path `{path}` has a space in it"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_a_space_is_refused() {
        let line = |program: &str| command_line(Path::new(program), Path::new("/peers/server.py"));
        assert!(line("/venv/bin/python").is_ok_and(|line| line == "/venv/bin/python /peers/server.py"));
        assert!(line("/my files/python").is_err());
    }

    #[test]
    fn a_peer_is_passed_to_the_bench_by_name() {
        let peer = Peer { name: "python", version: "mcp 1".to_owned(), command_line: "python server.py".to_owned() };
        assert_eq!(peer.arguments(), ["--peer", "python=python server.py"]);
    }
}
