//! The client's role: the suite is the server, and starts our client for each scenario.

use std::path::Path;
use std::time::Instant;

use super::requirements::{Requirements, Scenario};
use super::suite::Suite;
use super::table::{self, Row};
use super::{ScenarioFilter, results, serving, write_report};
use crate::failure::{Failure, Outcome};
use crate::paths;

/// What the suite does not score, in either revision: run all the same, and a list without one of them is not whole.
const UNSCORED: [&str; 7] = [
    "auth/client-credentials-jwt",
    "auth/client-credentials-basic",
    "auth/enterprise-managed-authorization",
    "auth/dpop",
    "auth/dpop-nonce",
    "auth/wif-jwt-bearer",
    "json-schema-2020-12-preservation",
];

/// Scenarios of revision 2025-03-26, which no requirement set has: servers like these are still there.
const BACK_COMPATIBLE: [&str; 2] =
    ["auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback"];

/// The revision that they are run in.
const BACK_COMPATIBLE_IN: &str = "2025-11-25";

/// Runs the scenarios, each alone, so that how the client ends is counted for each; false if something did not pass.
pub(super) async fn run(only: &ScenarioFilter) -> Outcome<bool> {
    let program = serving::client().await?;
    let suite = Suite::installed().await?;
    let mut rows = Vec::new();
    let begun = Instant::now();
    for revision in only.revisions() {
        let mut requirements = Requirements::of_clients(&suite.list(revision).await?)?;
        if let Some(absent) = UNSCORED.into_iter().find(|name| !requirements.has(name)) {
            return Err(Failure::new(format!("the suite's list for {revision} is without {absent}")));
        }
        let more = BACK_COMPATIBLE.iter().filter(|_| revision == BACK_COMPATIBLE_IN);
        for name in more {
            requirements.add(name);
        }
        if let Some(name) = &only.scenario {
            requirements.keep(name);
        }
        eprintln!("conformance: {} scenarios of {revision} against {}", requirements.len(), program.display());
        for scenario in requirements {
            rows.push(one(&suite, &program, revision, scenario).await?);
        }
    }
    if rows.is_empty() {
        return Err(Failure::new("no requirement set has such a scenario"));
    }
    eprintln!("conformance: {} runs took {} s", rows.len(), begun.elapsed().as_secs());
    write_report("client.md", &table::report(&rows, true))?;
    Ok(rows.iter().all(Row::passed))
}

async fn one(suite: &Suite, program: &Path, revision: &str, scenario: Scenario) -> Outcome<Row> {
    let results = paths::conformance().join("results").join(format!("client-{revision}"));
    let folder = results.join(scenario.name.replace('/', "-"));
    let content = suite.run_client(program, revision, &scenario.name, &folder).await?;
    // One that left no result crashed, or was never run.
    let checks = results::read_one(&folder)?.unwrap_or_default();
    Ok(Row::new(revision, scenario, checks).with_verdict(content))
}
