//! Packages from npm, installed by name into a folder of their own.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::process::Command;

use crate::failure::{Context, Outcome};
use crate::process;

const INSTALLING: Duration = Duration::from_secs(10 * 60);

/// Installs packages, each `name@version`, into `node_modules` of the folder. npm 12 and later run only the install
/// scripts of packages that are listed in `with_scripts`.
pub(crate) async fn install(folder: &Path, packages: &[String], with_scripts: &[&str]) -> Outcome<()> {
    std::fs::create_dir_all(folder).context(|| format!("making {}", folder.display()))?;
    let allowed: Map<String, Value> = with_scripts.iter().map(|name| ((*name).to_owned(), true.into())).collect();
    let manifest = json!({ "private": true, "allowScripts": allowed });
    std::fs::write(folder.join("package.json"), manifest.to_string())
        .context(|| format!("writing package.json in {}", folder.display()))?;
    let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
    let mut command = Command::new(npm);
    command.args(["install", "--no-audit", "--no-fund", "--save-exact", "--loglevel=error"]);
    command.args(packages).current_dir(folder);
    process::run_checked(&mut command, INSTALLING).await.map(drop)
}
