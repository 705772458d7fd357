//! The suite itself: installed from npm once, with the Node that it needs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;

use crate::failure::{Context, Failure, Outcome};
use crate::{npm, paths, process};

/// The release that the requirement sets are taken from. A new one may ask for other things: read its notes first.
const PACKAGE: &str = "@modelcontextprotocol/conformance";
const VERSION: &str = "0.2.0-alpha.12";
/// The suite uses what Node 20 does not have.
const NODE: &str = "22";

const LISTING: Duration = Duration::from_secs(60);
/// A whole requirement set takes seconds, and half a minute for each scenario that gets no answer.
const RUNNING: Duration = Duration::from_secs(20 * 60);

pub(crate) struct Suite {
    node: PathBuf,
    script: PathBuf,
}

impl Suite {
    /// The suite, which is installed first if it is not there.
    pub(crate) async fn installed() -> Outcome<Self> {
        let folder = paths::conformance().join("suite");
        let modules = folder.join("node_modules");
        let node = modules.join("node/bin").join(if cfg!(windows) { "node.exe" } else { "node" });
        let package = modules.join(PACKAGE);
        let suite = Self { node, script: package.join("dist/index.js") };
        if suite.problem(&package).await.is_some() {
            install(&folder).await?;
        }
        match suite.problem(&package).await {
            None => Ok(suite),
            Some(problem) => Err(Failure::new(format!("the suite in {} cannot be used: {problem}", folder.display()))),
        }
    }

    /// What a revision requires, as text.
    pub(crate) async fn list(&self, revision: &str) -> Outcome<String> {
        process::run_checked(self.command().args(["list", "--requirements", revision]), LISTING).await
    }

    /// Runs a requirement set, or one scenario, against a server. The results are in `folder`, and the folder holds
    /// nothing else.
    pub(crate) async fn run_server(
        &self,
        url: &str,
        revision: &str,
        scenario: Option<&str>,
        folder: &Path,
    ) -> Outcome<()> {
        empty(folder)?;
        let mut command = self.command();
        command.args(["server", "--url", url]).arg("--output-dir").arg(folder);
        match scenario {
            Some(scenario) => command.args(["--scenario", scenario, "--spec-version", revision, "--force"]),
            None => command.args(["--requirements", revision]),
        };
        // Its exit code speaks of what it scores; we read every check.
        let output = process::run(&mut command, RUNNING).await?;
        let log = folder.join("output.txt");
        std::fs::write(&log, &output.stdout).context(|| format!("writing {}", log.display()))
    }

    /// Runs one scenario against a client. True if the suite is content, also with how the client ended.
    pub(crate) async fn run_client(
        &self,
        program: &Path,
        revision: &str,
        scenario: &str,
        folder: &Path,
    ) -> Outcome<bool> {
        empty(folder)?;
        let mut command = self.command();
        command.arg("client").arg("--command").arg(program).arg("--output-dir").arg(folder);
        command.args(["--scenario", scenario, "--spec-version", revision, "--force"]);
        let output = process::run(&mut command, RUNNING).await?;
        let log = folder.join("output.txt");
        std::fs::write(&log, &output.stdout).context(|| format!("writing {}", log.display()))?;
        Ok(output.status.success())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(&self.script);
        command
    }

    /// Why it cannot be used, if it cannot.
    async fn problem(&self, package: &Path) -> Option<String> {
        let version = match process::run_checked(Command::new(&self.node).arg("--version"), LISTING).await {
            Ok(version) => version,
            // The package `node` only fetches the program when it is installed: npm may be configured not to run install scripts.
            Err(failure) => return Some(format!("Node does not run: {failure}")),
        };
        if !version.starts_with(&format!("v{NODE}.")) {
            return Some(format!("it needs Node {NODE}, and this is {}", version.trim()));
        }
        let Ok(manifest) = std::fs::read(package.join("package.json")) else {
            return Some(format!("{PACKAGE} is not there"));
        };
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap_or_default();
        (manifest["version"] != VERSION || !self.script.exists())
            .then(|| format!("it is not {PACKAGE} {VERSION}, but {}", manifest["version"]))
    }
}

fn empty(folder: &Path) -> Outcome<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).context(|| format!("emptying {}", folder.display()))?;
    }
    std::fs::create_dir_all(folder).context(|| format!("making {}", folder.display()))
}

async fn install(folder: &Path) -> Outcome<()> {
    eprintln!("conformance: installing {PACKAGE} {VERSION} into {}", folder.display());
    // The install script of the package `node` fetches the program.
    npm::install(folder, &[format!("node@{NODE}"), format!("{PACKAGE}@{VERSION}")], &["node"]).await
}
