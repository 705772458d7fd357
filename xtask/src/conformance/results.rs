//! What the suite found: one folder for each scenario, with its checks in `checks.json`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::failure::{Context, Outcome};

/// One thing that the suite looked at.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Check {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: Option<String>,
    pub(crate) status: Status,
    #[serde(default)]
    pub(crate) description: Option<String>,
    #[serde(default)]
    pub(crate) error_message: Option<String>,
}

impl Check {
    /// Whether this is only a record of what went over the wire, and nothing that could fail. Other notes are checks that
    /// the suite did not make.
    pub(crate) fn is_record(&self) -> bool {
        const RECORDS: [&str; 12] = [
            "outgoing-request",
            "incoming-response",
            "incoming-sse-event",
            "stream-closed",
            "incoming-request",
            "outgoing-response",
            "outgoing-sse-event",
            "outgoing-stream-close",
            "incoming-auth-request",
            "outgoing-auth-response",
            "server-info",
            // How many there were is a check of its own.
            "scope-retry-auth-attempt",
        ];
        self.status == Status::Info && RECORDS.contains(&self.id.as_str())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Status {
    Success,
    Failure,
    Warning,
    Skipped,
    Info,
}

/// The checks of each scenario. The names of the folders begin with `prefix` and end with the time.
pub(crate) fn read(folder: &Path, prefix: &str) -> Outcome<BTreeMap<String, Vec<Check>>> {
    let mut found: BTreeMap<String, Vec<Check>> = BTreeMap::new();
    let entries = folder.read_dir().context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let entry = entry.context(|| format!("reading {}", folder.display()))?;
        let Some(scenario) = entry.file_name().to_str().and_then(|name| scenario(name, prefix)).map(str::to_owned)
        else {
            continue;
        };
        let file = entry.path().join("checks.json");
        let text = std::fs::read(&file).context(|| format!("reading {}", file.display()))?;
        let checks: Vec<Check> = serde_json::from_slice(&text).context(|| format!("reading {}", file.display()))?;
        found.entry(scenario).or_default().extend(checks);
    }
    Ok(found)
}

/// The checks of the one scenario that was run into this folder; `None` if it left none. Its name may have slashes, which are
/// folders too.
pub(crate) fn read_one(folder: &Path) -> Outcome<Option<Vec<Check>>> {
    let file = folder.join("checks.json");
    if file.exists() {
        let text = std::fs::read(&file).context(|| format!("reading {}", file.display()))?;
        return serde_json::from_slice(&text).map(Some).context(|| format!("reading {}", file.display()));
    }
    for entry in folder.read_dir().context(|| format!("reading {}", folder.display()))? {
        let path = entry.context(|| format!("reading {}", folder.display()))?.path();
        if path.is_dir()
            && let Some(checks) = read_one(&path)?
        {
            return Ok(Some(checks));
        }
    }
    Ok(None)
}

/// `ping` of `server-ping-2026-01-31T12-00-00-000Z`.
fn scenario<'a>(folder: &'a str, prefix: &str) -> Option<&'a str> {
    const TIME: usize = "-2026-01-31T12-00-00-000Z".len();
    let named = folder.strip_prefix(prefix)?;
    named.get(..named.len().checked_sub(TIME)?).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_not_part_of_the_name() {
        assert_eq!(scenario("server-tools-list-2026-01-31T12-00-00-000Z", "server-"), Some("tools-list"));
        assert_eq!(scenario("server-server-stateless-2026-01-31T12-00-00-000Z", "server-"), Some("server-stateless"));
        assert_eq!(scenario("server-", "server-"), None);
        assert_eq!(scenario("client-initialize-2026-01-31T12-00-00-000Z", "server-"), None);
    }
}
