//! The names of methods that are not in the specification.

use crate::method::Method;

/// The maximum length of the name of a vendor method, in bytes. The name is limited because it is sent in an HTTP header too,
/// and written to logs.
const MAX_NAME: usize = 128;

/// A request or notification that is not in the specification: of a vendor, or of an extension of the protocol.
///
/// By convention the name of a vendor method begins with a prefix of its owner, as in `acme/reindex`, and the name of a
/// notification with `notifications/`. The name of a vendor method in a constant is checked when the program is compiled:
///
/// ```compile_fail,E0080
/// use steadfast_model::VendorMethod;
/// const CALL: VendorMethod = VendorMethod::request("tools/call"); // in the specification
/// ```
///
/// Each side handles only the vendor methods that it has a handler for. A vendor method without a handler is unknown
/// to its receiver, as if the method did not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VendorMethod {
    name: &'static str,
    notification: bool,
    read_only: bool,
}

impl VendorMethod {
    /// A vendor's request. Clients may send vendor requests in every revision, servers up to 2025-11-25.
    ///
    /// # Panics
    ///
    /// Panics if the name of the method is in the specification or begins with `rpc.`, which JSON-RPC reserves; if it is empty
    /// or longer than 128 bytes; if it has other characters than the visible ones of ASCII without `"` and `\`.
    pub const fn request(name: &'static str) -> Self {
        check(name);
        Self { name, notification: false, read_only: false }
    }

    /// A vendor's notification. Since 2026-07-28 servers send vendor notifications only while they work on a request of the
    /// client.
    ///
    /// # Panics
    ///
    /// As [`VendorMethod::request`] does.
    pub const fn notification(name: &'static str) -> Self {
        check(name);
        Self { name, notification: true, read_only: false }
    }

    /// Marks a vendor request that changes nothing: a client that does not know whether the request arrived may send it again.
    pub const fn read_only(self) -> Self {
        Self { read_only: !self.notification, ..self }
    }

    /// The name of the vendor method on the wire, such as `acme/reindex`.
    pub const fn name(self) -> &'static str {
        self.name
    }

    pub(crate) const fn is_notification(self) -> bool {
        self.notification
    }

    pub(crate) const fn is_read_only(self) -> bool {
        self.read_only
    }
}

const fn check(name: &str) {
    let bytes = name.as_bytes();
    assert!(!bytes.is_empty(), "the name of a vendor method is empty");
    assert!(bytes.len() <= MAX_NAME, "the name of a vendor method is longer than 128 bytes");
    let mut index = 0;
    while index < bytes.len() {
        let valid = bytes[index].is_ascii_graphic() && bytes[index] != b'"' && bytes[index] != b'\\';
        assert!(
            valid,
            "the name of a vendor method may have only visible ASCII characters, and no quotes or backslashes"
        );
        index += 1;
    }
    assert!(!starts_with(bytes, b"rpc."), "names of methods that begin with `rpc.` are reserved by JSON-RPC");
    let mut index = 0;
    while index < Method::ALL.len() {
        let known = Method::ALL[index].name().as_bytes();
        let same = known.len() == bytes.len() && starts_with(bytes, known);
        assert!(!same, "this vendor method is in the specification: use its variant of `Method`");
        index += 1;
    }
}

const fn starts_with(bytes: &[u8], prefix: &[u8]) -> bool {
    if bytes.len() < prefix.len() {
        return false;
    }
    let mut index = 0;
    while index < prefix.len() {
        if bytes[index] != prefix[index] {
            return false;
        }
        index += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::SentBy;
    use crate::revision::Revision;

    #[test]
    fn names_that_would_need_escapes_or_are_taken_are_refused() {
        for name in ["", "tools/call", "rpc.discover", "a b", "a\"b", "a\\b", "caf\u{e9}", "a\n"] {
            assert!(std::panic::catch_unwind(|| VendorMethod::request(name)).is_err(), "{name:?}");
        }
        assert!(std::panic::catch_unwind(|| VendorMethod::request("x".repeat(129).leak())).is_err());
        assert_eq!(VendorMethod::request("acme/tools/call").name(), "acme/tools/call");
    }

    #[test]
    fn a_stateless_server_sends_notifications_of_a_vendor_and_no_requests() {
        let (request, notification) =
            (Method::vendor_request("acme/a"), Method::vendor_notification("notifications/acme/b"));
        assert_eq!(request.sender_in(Revision::V2025_11_25), Some(SentBy::Both));
        assert_eq!(request.sender_in(Revision::V2026_07_28), Some(SentBy::Client));
        assert_eq!(notification.sender_in(Revision::V2026_07_28), Some(SentBy::Both));
        assert!(notification.is_notification() && !request.is_notification());
    }

    #[test]
    fn only_requests_that_say_so_are_read_only() {
        let method = VendorMethod::request("acme/look");
        assert!(!Method::Vendor(method).is_read_only());
        assert!(Method::Vendor(method.read_only()).is_read_only());
    }
}
