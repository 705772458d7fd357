//! Which scopes a resource may require.

use steadfast_model::Scopes;

/// Requests a refresh token. It concerns the client and its authorization server only, so a resource never requires it.
const OFFLINE_ACCESS: &str = "offline_access";

/// The scopes without those that a resource must not require.
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
