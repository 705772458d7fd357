//! Packages, installed once into folders of their own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::Result;
use crate::package::{Package, Registry};
use crate::process::finish;

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
        once(&folder, &["node@22"], || npm(&folder, &["node@22"], None))?;
        Ok(Self { bin })
    }

    fn program(&self) -> PathBuf {
        self.bin.join("node")
    }
}

/// Installs packages, those of the two registries side by side; each by its name, or why not.
pub(crate) fn all(packages: &[&'static Package], base: &Path) -> Result<BTreeMap<&'static str, Result<Installed>>> {
    let (python, node): (Vec<_>, Vec<_>) =
        packages.iter().copied().partition(|package| package.registry == Registry::Python);
    std::thread::scope(|scope| {
        let python = scope.spawn(|| {
            let one = |package: &&'static Package| (package.name, Installed::new(package, base, None));
            python.iter().map(one).collect::<Vec<_>>()
        });
        let program = if node.is_empty() { Ok(None) } else { Node::install(base).map(Some) };
        let one = |package: &'static Package| {
            let installed = program.clone().and_then(|program| Installed::new(package, base, program.as_ref()));
            (package.name, installed)
        };
        let node: Vec<_> = node.into_iter().map(one).collect();
        let python = python.join().map_err(|_| "the thread that installs from PyPI panicked".to_owned())?;
        Ok(python.into_iter().chain(node).collect())
    })
}

/// A package that is there.
pub(crate) struct Installed {
    registry: Registry,
    folder: PathBuf,
    node: PathBuf,
    home: PathBuf,
}

impl Installed {
    fn new(package: &'static Package, base: &Path, node: Option<&Node>) -> Result<Self> {
        let folder = base.join(package.name);
        let there = package.wanted.iter().find(|wanted| is_there(&folder, wanted));
        let taken = there.map_or_else(|| first_to_be_had(package, &folder, node), |taken| Ok(*taken))?;
        println!("{}: {}", package.name, taken.first().unwrap_or(&""));
        if let Some([wanted, ..]) = package.wanted.first().filter(|wanted| **wanted != taken) {
            println!("  because {wanted} could not be installed");
        }
        let home = base.join("home");
        fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
        // Python needs none, and runs none.
        let node = node.map(Node::program).unwrap_or_default();
        let installed = Self { registry: package.registry, folder, node, home };
        installed.bring_scripts()?;
        Ok(installed)
    }

    /// What runs its scripts.
    pub(crate) fn program(&self) -> PathBuf {
        match self.registry {
            Registry::Python => python_of(&self.folder),
            Registry::Node => self.node.clone(),
        }
    }

    /// A file of it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The environment of its scripts. They store settings in the home folder, and those of the user must not be read or changed.
    /// Compiled code is cached: most of the time goes into starting them.
    pub(crate) fn variables(&self) -> [(&'static str, PathBuf); 2] {
        [("HOME", self.home.clone()), ("NODE_COMPILE_CACHE", self.home.join("node"))]
    }

    /// A script of it, to be run in a folder.
    pub(crate) fn command(&self, script: &str, folder: &Path) -> Command {
        let mut command = Command::new(self.program());
        command.arg(self.path(script)).envs(self.variables()).current_dir(folder);
        command.env_remove(NOT_KEPT);
        command
    }

    /// Beside the packages: that is where they are looked for.
    fn bring_scripts(&self) -> Result {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"));
        let scripts = source.join(match self.registry {
            Registry::Python => "python",
            Registry::Node => "typescript",
        });
        let fail = |error: std::io::Error| format!("{}: {error}", scripts.display());
        let files = fs::read_dir(&scripts).map_err(fail)?.collect::<Result<Vec<_>, _>>().map_err(fail)?;
        let files = files.into_iter().map(|file| file.path()).filter(|path| path.is_file());
        for path in files.chain([source.join("offers.json")]) {
            let name = path.file_name().unwrap_or_default();
            fs::copy(&path, self.folder.join(name)).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    }
}

/// Tells Python not to keep what it has compiled.
pub(crate) const NOT_KEPT: &str = "PYTHONDONTWRITEBYTECODE";

/// Installs the first of those wanted that the registry has whole.
fn first_to_be_had(package: &Package, folder: &Path, node: Option<&Node>) -> Result<&'static [&'static str]> {
    let mut refusals = Vec::new();
    for &wanted in package.wanted {
        let installed = once(folder, wanted, || match package.registry {
            Registry::Python => pip(folder, wanted),
            Registry::Node => npm(folder, wanted, node),
        });
        match installed {
            Ok(()) => return Ok(wanted),
            Err(words) => refusals.push(format!("{}: {words}", wanted.join(" "))),
        }
    }
    Err(format!("cannot be installed: {}", refusals.join("\n")))
}

/// Installs, unless these very packages are there already: a file says so, and is written last.
fn once(folder: &Path, wanted: &[&str], install: impl FnOnce() -> Result) -> Result {
    let fail = |error: std::io::Error| format!("{}: {error}", folder.display());
    if is_there(folder, wanted) {
        return Ok(());
    }
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(fail)?;
    }
    fs::create_dir_all(folder).map_err(fail)?;
    install()?;
    fs::write(mark(folder), wanted.join(" ")).map_err(fail)
}

fn is_there(folder: &Path, wanted: &[&str]) -> bool {
    fs::read_to_string(mark(folder)).is_ok_and(|there| there == wanted.join(" "))
}

fn mark(folder: &Path) -> PathBuf {
    folder.join("installed")
}

fn pip(folder: &Path, wanted: &[&str]) -> Result {
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    finish(Command::new(python).args(["-m", "venv", "."]).current_dir(folder), INSTALLING, folder)?;
    let mut command = Command::new(python_of(folder));
    // Few of the installed modules are ever imported: those are compiled then, and cached.
    command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]);
    command.args(wanted).current_dir(folder);
    finish(&mut command, INSTALLING, folder).map(drop)
}

fn npm(folder: &Path, wanted: &[&str], node: Option<&Node>) -> Result {
    let fail = |error: std::io::Error| format!("{}: {error}", folder.display());
    // The package `node` fetches the program when it is installed; newer versions of npm want that allowed.
    let manifest = json!({ "private": true, "allowScripts": { "node": true } });
    fs::write(folder.join("package.json"), manifest.to_string()).map_err(fail)?;
    let mut command = Command::new("npm");
    command.args(["install", "--no-audit", "--no-fund"]).args(wanted).current_dir(folder);
    if let Some(node) = node {
        // Packages check the version of the tool that installs them.
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(node.bin.clone()).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(folders).map_err(|error| error.to_string())?);
    }
    finish(&mut command, INSTALLING, folder).map(drop)
}

fn python_of(folder: &Path) -> PathBuf {
    folder.join("bin/python")
}
