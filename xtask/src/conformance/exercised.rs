//! Checks that a client under test has to have been put to. A scenario of the client's role passes also if the client does
//! little: what it does not do is not checked. So where that could happen, the checks are listed.

use super::results::{Check, Status};

/// A check is found by its id, or by its name where several have one id.
const EXERCISED: &[(&str, &[&str])] = &[
    (
        "http-standard-headers",
        &[
            "ClientMcpMethodHeader_tools_list",
            "ClientMcpMethodHeader_tools_call",
            "ClientMcpMethodHeader_resources_list",
            "ClientMcpMethodHeader_resources_read",
            "ClientMcpMethodHeader_prompts_list",
            "ClientMcpMethodHeader_prompts_get",
            "ClientMcpNameHeader_tools_call",
            "ClientMcpNameHeader_resources_read",
            "ClientMcpNameHeader_prompts_get",
        ],
    ),
    (
        "request-metadata",
        &[
            "sep-2575-http-client-sends-version-header",
            "sep-2575-client-populates-meta",
            "sep-2575-client-sends-client-info",
            "sep-2575-http-version-header-matches-meta",
            "sep-2575-client-declares-roots-capability",
            "sep-2575-client-declares-sampling-capability",
            "sep-2575-client-declares-elicitation-capability",
            "sep-2575-client-retry-supported-version",
        ],
    ),
];

/// The checks of a scenario that should have been made with success, and were not.
pub(crate) fn missing<'a>(scenario: &'a str, checks: &'a [Check]) -> impl Iterator<Item = &'static str> + 'a {
    let wanted = EXERCISED.iter().filter(move |(name, _)| *name == scenario).flat_map(|(_, wanted)| *wanted).copied();
    let made = |check: &Check, wanted: &str| {
        check.status == Status::Success && (check.id == wanted || check.name.as_deref() == Some(wanted))
    };
    wanted.filter(move |wanted| !checks.iter().any(|check| made(check, wanted)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(id: &str, name: &str, status: Status) -> Check {
        let name = Some(name.to_owned());
        Check { id: id.to_owned(), name, status, description: None, error_message: None }
    }

    #[test]
    fn what_was_not_exercised_is_missed() {
        assert_eq!(missing("http-standard-headers", &[]).count(), 9);
        assert_eq!(missing("request-metadata", &[]).count(), 8);
        assert_eq!(missing("tools_call", &[]).count(), 0);
    }

    #[test]
    fn a_check_counts_by_its_id_or_its_name_and_only_if_it_succeeded() {
        let left = |id: &str, name: &str, status| missing("request-metadata", &[check(id, name, status)]).count();
        assert_eq!(left("sep-2575-client-populates-meta", "Meta", Status::Success), 7);
        assert_eq!(left("other", "sep-2575-client-populates-meta", Status::Success), 7);
        assert_eq!(left("sep-2575-client-populates-meta", "Meta", Status::Skipped), 8);
    }
}
