//! The official conformance suite, `@modelcontextprotocol/conformance`, from npm.
//!
//! Everything is looked at, not only what the suite itself scores: a scenario counts as passed when each of its checks
//! could be made and succeeded. What cannot be, and why, is listed in [`expected_failures`].

mod client;
mod exercised;
mod expected_failures;
mod requirements;
mod results;
mod serving;
mod suite;
mod table;

use clap::{Args, Subcommand};

use crate::failure::{Context, Failure, Outcome};
use crate::paths;
use requirements::{REVISIONS, Requirements};
use serving::Serving;
use suite::Suite;
use table::Row;

/// Which side the suite is run against.
#[derive(Subcommand)]
pub(crate) enum Role {
    /// Runs it against `steadfast serve --http 127.0.0.1:0 --conformance`.
    Server(ScenarioFilter),
    /// Runs it against `conformance-client` of `testing/conformance`, each scenario alone.
    Client(ScenarioFilter),
}

#[derive(Args)]
pub(crate) struct ScenarioFilter {
    /// Run only this scenario, in each revision that has it.
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,
    /// Run only this revision.
    #[arg(long, value_name = "REVISION", value_parser = REVISIONS)]
    revision: Option<String>,
}

impl ScenarioFilter {
    fn revisions(&self) -> impl Iterator<Item = &'static str> {
        REVISIONS.into_iter().filter(|known| self.revision.as_deref().is_none_or(|only| only == *known))
    }
}

/// Runs the suite; false if something did not pass.
pub(crate) async fn run(role: Role) -> Outcome<bool> {
    match role {
        Role::Server(only) => server(only).await,
        Role::Client(only) => client::run(&only).await,
    }
}

async fn server(options: ScenarioFilter) -> Outcome<bool> {
    let program = serving::program().await?;
    let suite = Suite::installed().await?;
    let mut rows = Vec::new();
    let mut serving = Serving::start(&program).await?;
    for revision in options.revisions() {
        rows.extend(one_revision(&suite, &serving, revision, options.scenario.as_deref()).await?);
    }
    if rows.is_empty() {
        return Err(Failure::new("no requirement set has such a scenario"));
    }
    let alive = serving.alive();
    serving.stop().await;
    write_report("server.md", &table::report(&rows, alive))?;
    Ok(alive && rows.iter().all(Row::passed))
}

/// Shows a report, and keeps it.
fn write_report(name: &str, report: &str) -> Outcome<()> {
    print!("{report}");
    let file = paths::conformance().join(name);
    std::fs::write(&file, report).context(|| format!("writing {}", file.display()))
}

/// Runs a requirement set, or one scenario of it, and looks at every check.
async fn one_revision(suite: &Suite, serving: &Serving, revision: &str, only: Option<&str>) -> Outcome<Vec<Row>> {
    let mut requirements = Requirements::of_servers(&suite.list(revision).await?)?;
    if let Some(only) = only {
        requirements.keep(only);
        if requirements.is_empty() {
            return Ok(Vec::new());
        }
    }
    let folder = paths::conformance().join("results").join(format!("server-{revision}"));
    eprintln!("conformance: {} scenarios of {revision} against {}", requirements.len(), serving.url());
    suite.run_server(serving.url(), revision, only, &folder).await?;
    let mut found = results::read(&folder, "server-")?;
    let rows = requirements.into_iter().map(|scenario| {
        // One that left no result crashed, or was never run.
        let checks = found.remove(&scenario.name).unwrap_or_default();
        Row::new(revision, scenario, checks)
    });
    Ok(rows.collect())
}
