//! Redaction of URLs for errors and logs.

/// The URL without credentials, query and fragment, and at most 200 characters long.
pub(crate) fn redact_url(text: &str) -> String {
    let end = text.find(['?', '#']).unwrap_or(text.len());
    let (before, after) = text.split_at_checked(end).unwrap_or_default();
    let authority = before.split_once("://").map_or(before, |(_, rest)| rest);
    if after.contains('@') && !authority.contains('/') {
        // The `?` or `#` may be part of a password, so what precedes it may be the beginning of that password.
        return String::from("<URL withheld: it may contain a password>");
    }
    // There may be a password before the `@`.
    let shown = before.rsplit('@').next().unwrap_or_default();
    shown.chars().filter(|character| !character.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_and_queries_are_not_shown() {
        assert_eq!(redact_url("https://user:s3cr3t@a.example/x?token=s3cr3t"), "a.example/x");
        assert_eq!(redact_url("https://a.example/x?to=me@s3cr3t"), "https://a.example/x");
        for text in ["https://me:s3cr?3t@a.example/x", "https://me:s3cr#3t@a.example", "me:s3cr?@3t"] {
            assert!(!redact_url(text).contains("s3cr"), "{text}");
        }
    }
}
