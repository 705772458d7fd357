//! The clients, installed once into folders of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::client::{Client, Kind};
use crate::process::finish;
use crate::room::Room;
use crate::{Result, Run, inspector};

const INSTALLING: Duration = Duration::from_secs(600);
const LIMIT: Duration = Duration::from_secs(60);

/// Node from npm's own package: the Inspector wants a newer one than many systems have.
pub(crate) struct Node {
    bin: PathBuf,
}

impl Node {
    pub(crate) fn install(base: &Path) -> Result<Self> {
        let folder = base.join("node");
        let bin = folder.join("node_modules/.bin");
        once(&folder, "node@22", || npm(&folder, "node@22", None))?;
        Ok(Self { bin })
    }

    fn program(&self) -> PathBuf {
        self.bin.join("node")
    }
}

/// A client that is there.
pub(crate) struct Installed {
    /// Its name with the package that was really had.
    pub(crate) name: String,
    kind: Kind,
    folder: PathBuf,
    node: PathBuf,
    home: PathBuf,
}

impl Installed {
    pub(crate) fn new(client: &Client, base: &Path, node: &Node) -> Result<Self> {
        let folder = base.join(client.name);
        let there = client.packages.iter().find(|package| is_there(&folder, package));
        let package = there.map_or_else(|| first_to_be_had(client, &folder, node), |package| Ok(*package))?;
        if let Some(wanted) = client.packages.first().filter(|wanted| **wanted != package) {
            println!("{}: {package}, because {wanted} could not be installed", client.name);
        }
        let home = base.join("home");
        fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
        let installed = Self {
            name: format!("{} ({package})", client.name),
            kind: client.kind,
            folder,
            node: node.program(),
            home,
        };
        installed.bring_scripts()?;
        Ok(installed)
    }

    /// Does a check, and tells what the client saw.
    pub(crate) fn observe(&self, run: &Run, room: &Room) -> Result<Value> {
        let mut command = match self.kind {
            Kind::Inspector => return inspector::observe(run, room, || self.inspector(room)),
            Kind::Python(script) => {
                let mut python = Command::new(python_of(&self.folder));
                python.arg(self.folder.join(script));
                python
            }
            Kind::TypeScript(script) => {
                let mut node = Command::new(&self.node);
                node.arg(self.folder.join(script));
                node
            }
        };
        command.args([run.check.name, run.revision]).args(room.target());
        self.surround(&mut command, room);
        let text = finish(&mut command, LIMIT, room.folder())?;
        let line = text.lines().last().unwrap_or_default();
        serde_json::from_str(line).map_err(|error| format!("{error} in {text:?}"))
    }

    fn inspector(&self, room: &Room) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(inspector::launcher(&self.folder));
        self.surround(&mut command, room);
        command
    }

    fn surround(&self, command: &mut Command, room: &Room) {
        // Clients keep settings there, and nobody's settings are to be read or changed.
        command.env("HOME", &self.home).env("CLEANUP_LOG", room.cleanup_log()).current_dir(room.folder());
    }

    /// Beside the packages: that is where they are looked for.
    fn bring_scripts(&self) -> Result {
        let (folder, names): (_, &[&str]) = match self.kind {
            Kind::Python(script) => ("python", &["checks.py", script]),
            Kind::TypeScript(script) => ("typescript", &["checks.mjs", script]),
            Kind::Inspector => return Ok(()),
        };
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        for name in names {
            let copied = fs::copy(source.join(name), self.folder.join(name));
            copied.map_err(|error| format!("{name}: {error}"))?;
        }
        Ok(())
    }
}

/// Installs the first of a client's packages that its registry has whole.
fn first_to_be_had(client: &Client, folder: &Path, node: &Node) -> Result<&'static str> {
    let mut refusals = Vec::new();
    for &package in client.packages {
        let installed = once(folder, package, || match client.kind {
            Kind::Python(_) => pip(folder, package),
            Kind::TypeScript(_) | Kind::Inspector => npm(folder, package, Some(node)),
        });
        match installed {
            Ok(()) => return Ok(package),
            Err(words) => refusals.push(format!("{package}: {words}")),
        }
    }
    Err(format!("cannot be installed: {}", refusals.join("\n")))
}

/// Installs, unless this very package is there already: a file says so, and is written last.
fn once(folder: &Path, package: &str, install: impl FnOnce() -> Result) -> Result {
    let fail = |error: std::io::Error| format!("{}: {error}", folder.display());
    if is_there(folder, package) {
        return Ok(());
    }
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(fail)?;
    }
    fs::create_dir_all(folder).map_err(fail)?;
    install()?;
    fs::write(mark(folder), package).map_err(fail)
}

fn is_there(folder: &Path, package: &str) -> bool {
    fs::read_to_string(mark(folder)).is_ok_and(|there| there == package)
}

fn mark(folder: &Path) -> PathBuf {
    folder.join("installed")
}

fn pip(folder: &Path, package: &str) -> Result {
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    finish(Command::new(python).args(["-m", "venv", "."]).current_dir(folder), INSTALLING, folder)?;
    let mut command = Command::new(python_of(folder));
    command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]).current_dir(folder);
    finish(&mut command, INSTALLING, folder).map(drop)
}

fn npm(folder: &Path, package: &str, node: Option<&Node>) -> Result {
    let fail = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::write(folder.join("package.json"), "{ \"private\": true }\n").map_err(fail)?;
    let mut command = Command::new("npm");
    command.args(["install", "--no-audit", "--no-fund", package]).current_dir(folder);
    if let Some(node) = node {
        // Packages look at the version of whoever installs them.
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(node.bin.clone()).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(folders).map_err(|error| error.to_string())?);
    }
    finish(&mut command, INSTALLING, folder).map(drop)
}

fn python_of(folder: &Path) -> PathBuf {
    folder.join("bin/python")
}
