//! Which scopes a resource may ask for.

use steadfast_model::Scopes;

/// Asks for a refresh token. It is between a client and its authorization server, so a resource never asks for it.
const OFFLINE_ACCESS: &str = "offline_access";

/// Those that a resource may ask for.
pub(crate) fn requestable(scopes: Scopes) -> Scopes {
    scopes.without(OFFLINE_ACCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_does_not_ask_for_offline_access() {
        assert_eq!(requestable("read offline_access".parse().unwrap()).to_string(), "read");
    }
}
