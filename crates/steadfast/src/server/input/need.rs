//! The client capabilities that a handler needs.

use steadfast_model::{ClientCapabilities, ElicitationCapability, Revision};
use steadfast_proto::connection::PeerInfo;

use crate::error::Error;

/// A client capability that a handler of the server needs.
///
/// Declare the capability for the tool, prompt or resource that needs it
/// ([`ServerToolBuilder::needs`](crate::server::ServerToolBuilder::needs), `#[tool(needs = sampling)]`), and requests
/// of clients without the capability are refused before the handler runs. A handler for which the capability is
/// optional can check [`ClientInfo::capabilities`](crate::server::ClientInfo::capabilities) instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RequiredClientCapability {
    /// Ask the client's user with a form.
    Elicitation,
    /// Ask the client's user to visit a URL.
    ElicitationUrl,
    /// Ask the model.
    Sampling,
    /// Ask the client's model, and let the model use tools.
    SamplingTools,
    /// List the roots.
    Roots,
}

impl RequiredClientCapability {
    /// Whether a client with these capabilities has the required capability.
    pub fn is_met(self, capabilities: &ClientCapabilities) -> bool {
        let elicitation = capabilities.elicitation.as_ref();
        let sampling = capabilities.sampling.as_ref();
        match self {
            Self::Elicitation => elicitation.is_some_and(ElicitationCapability::has_form),
            Self::ElicitationUrl => elicitation.is_some_and(ElicitationCapability::has_url),
            Self::Sampling => sampling.is_some(),
            Self::SamplingTools => sampling.is_some_and(|sampling| sampling.tools.is_some()),
            Self::Roots => capabilities.roots.is_some(),
        }
    }

    /// Adds this capability.
    fn added_to(self, capabilities: ClientCapabilities) -> ClientCapabilities {
        match self {
            Self::Elicitation => capabilities.with_elicitation_form(),
            Self::ElicitationUrl => capabilities.with_elicitation_url(),
            Self::Sampling => capabilities.with_sampling(),
            Self::SamplingTools => capabilities.with_sampling_tools(),
            Self::Roots => capabilities.with_roots(false),
        }
    }

    /// The name of the client capability in error messages.
    fn name(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation by a form",
            Self::ElicitationUrl => "elicitation by a URL",
            Self::Sampling => "sampling",
            Self::SamplingTools => "sampling with tools",
            Self::Roots => "roots",
        }
    }
}

/// Checks that a client has all required capabilities; the error names every capability that is missing.
pub(crate) fn check(needs: &[RequiredClientCapability], client: &PeerInfo) -> Result<(), Error> {
    check_for(needs, client.revision, &client.client_capabilities)
}

fn check_for(
    needs: &[RequiredClientCapability],
    revision: Revision,
    capabilities: &ClientCapabilities,
) -> Result<(), Error> {
    let missing: Vec<RequiredClientCapability> =
        needs.iter().copied().filter(|need| !need.is_met(capabilities)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let required = missing.iter().fold(ClientCapabilities::new(), |required, need| need.added_to(required));
    let names: Vec<&str> = missing.iter().map(|need| need.name()).collect();
    let message = format!("this request needs a client that has declared {}", names.join(", "));
    Err(Error::missing_capability(revision, message, &required))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steadfast_model::code;

    use super::*;

    fn capabilities(value: serde_json::Value) -> ClientCapabilities {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn all_missing_capabilities_are_named() {
        let needs = [
            RequiredClientCapability::Sampling,
            RequiredClientCapability::ElicitationUrl,
            RequiredClientCapability::Roots,
        ];
        let has = capabilities(json!({"elicitation": {}, "roots": {}}));
        let error = check_for(&needs, Revision::V2026_07_28, &has).unwrap_err();
        assert_eq!(error.object().code, code::MISSING_CAPABILITY);
        let required = json!({"requiredCapabilities": {"sampling": {}, "elicitation": {"url": {}}}});
        assert_eq!(error.object().data, Some(required));
    }

    #[test]
    fn the_code_is_sent_only_to_revisions_that_have_it() {
        let error = check_for(&[RequiredClientCapability::Sampling], Revision::V2025_11_25, &ClientCapabilities::new())
            .unwrap_err();
        assert_eq!(error.object().code, code::INTERNAL_ERROR);
        assert_eq!(error.to_string(), "this request needs a client that has declared sampling");
    }

    #[test]
    fn modes_and_tools_are_distinguished() {
        let plain = capabilities(json!({"elicitation": {}, "sampling": {}}));
        assert!(
            RequiredClientCapability::Elicitation.is_met(&plain)
                && !RequiredClientCapability::ElicitationUrl.is_met(&plain)
        );
        assert!(
            RequiredClientCapability::Sampling.is_met(&plain)
                && !RequiredClientCapability::SamplingTools.is_met(&plain)
        );
        let rich = capabilities(json!({"elicitation": {"url": {}}, "sampling": {"tools": {}}}));
        assert!(
            !RequiredClientCapability::Elicitation.is_met(&rich)
                && RequiredClientCapability::ElicitationUrl.is_met(&rich)
        );
        assert!(RequiredClientCapability::SamplingTools.is_met(&rich));
    }
}
