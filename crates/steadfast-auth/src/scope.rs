//! Which OAuth scopes a resource server may require.

use steadfast_model::Scopes;

/// The OAuth scope that requests a refresh token. The scope `offline_access` concerns the client and its
/// authorization server only, so a resource server never requires it.
const OFFLINE_ACCESS: &str = "offline_access";

/// Removes the scope `offline_access`, which a resource server must not require.
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
