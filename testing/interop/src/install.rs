//! The clients, installed once into folders of their own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::client::{Client, Kind};
use crate::process::finish;
use crate::{Result, inspector};

const INSTALLING: Duration = Duration::from_secs(600);

/// Node from npm's own package: the Inspector wants a newer one than many systems have.
#[derive(Clone)]
struct Node {
    bin: PathBuf,
}

impl Node {
    fn install(base: &Path) -> Result<Self> {
        let folder = base.join("node");
        let bin = folder.join("node_modules/.bin");
        once(&folder, "node@22", || npm(&folder, "node@22", None))?;
        Ok(Self { bin })
    }

    fn program(&self) -> PathBuf {
        self.bin.join("node")
    }
}

/// Installs the clients that are wanted, those of the two registries side by side; each by its name, or why not.
pub(crate) fn all(
    wanted: impl Fn(&Client) -> bool + Sync,
    base: &Path,
) -> Result<BTreeMap<&'static str, Result<Installed>>> {
    let is_python = |client: &&Client| matches!(client.kind, Kind::Python(_));
    let (python, npm): (Vec<_>, Vec<_>) = Client::ALL.iter().filter(|client| wanted(client)).partition(is_python);
    std::thread::scope(|scope| {
        let python = scope.spawn(|| {
            let one = |client: &&'static Client| (client.name, Installed::new(client, base, None));
            python.iter().map(one).collect::<Vec<_>>()
        });
        let node = if npm.is_empty() { Ok(None) } else { Node::install(base).map(Some) };
        let one = |client: &'static Client| {
            let installed = node.clone().and_then(|node| Installed::new(client, base, node.as_ref()));
            (client.name, installed)
        };
        let npm: Vec<_> = npm.into_iter().map(one).collect();
        let python = python.join().map_err(|_| "the installation from PyPI fell over".to_owned())?;
        Ok(python.into_iter().chain(npm).collect())
    })
}

/// A client that is there.
pub(crate) struct Installed {
    kind: Kind,
    folder: PathBuf,
    node: PathBuf,
    home: PathBuf,
}

impl Installed {
    fn new(client: &Client, base: &Path, node: Option<&Node>) -> Result<Self> {
        let folder = base.join(client.name);
        let there = client.packages.iter().find(|package| is_there(&folder, package));
        let package = there.map_or_else(|| first_to_be_had(client, &folder, node), |package| Ok(*package))?;
        println!("{}: {package}", client.name);
        if let Some(wanted) = client.packages.first().filter(|wanted| **wanted != package) {
            println!("  because {wanted} could not be installed");
        }
        let home = base.join("home");
        fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
        // Python clients need none, and run none.
        let node = node.map(Node::program).unwrap_or_default();
        let installed = Self { kind: client.kind, folder, node, home };
        installed.bring_scripts()?;
        Ok(installed)
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// The client, to be run in a folder.
    pub(crate) fn command(&self, folder: &Path) -> Command {
        let (program, script) = match self.kind {
            Kind::Python(script) => (python_of(&self.folder), self.folder.join(script)),
            Kind::TypeScript(script) => (self.node.clone(), self.folder.join(script)),
            Kind::Inspector => (self.node.clone(), inspector::launcher(&self.folder)),
        };
        let mut command = Command::new(program);
        // Clients keep settings at home, and nobody's settings are to be read or changed.
        command.arg(script).env("HOME", &self.home).current_dir(folder);
        // What was compiled once is kept: most of the time goes into starting clients.
        command.env_remove("PYTHONDONTWRITEBYTECODE").env("NODE_COMPILE_CACHE", self.home.join("node"));
        command
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
fn first_to_be_had(client: &Client, folder: &Path, node: Option<&Node>) -> Result<&'static str> {
    let mut refusals = Vec::new();
    for &package in client.packages {
        let installed = once(folder, package, || match client.kind {
            Kind::Python(_) => pip(folder, package),
            Kind::TypeScript(_) | Kind::Inspector => npm(folder, package, node),
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
    // Few of the modules that are installed are ever imported: those are compiled then, and kept.
    command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", package]);
    command.current_dir(folder);
    finish(&mut command, INSTALLING, folder).map(drop)
}

fn npm(folder: &Path, package: &str, node: Option<&Node>) -> Result {
    let fail = |error: std::io::Error| format!("{}: {error}", folder.display());
    // The package `node` fetches the program when it is installed; newer versions of npm want that allowed.
    let manifest = json!({ "private": true, "allowScripts": { "node": true } });
    fs::write(folder.join("package.json"), manifest.to_string()).map_err(fail)?;
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
