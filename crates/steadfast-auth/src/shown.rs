//! URLs in errors and logs: where they lead, without what people hide in them.

/// A URL for people: without its password and without what comes after its path, and not too long.
pub(crate) fn shown(text: &str) -> String {
    let end = text.find(['?', '#']).unwrap_or(text.len());
    let (before, after) = text.split_at_checked(end).unwrap_or_default();
    let authority = before.split_once("://").map_or(before, |(_, rest)| rest);
    if after.contains('@') && !authority.contains('/') {
        // That may be the end of a password with such a sign in it, and what is before it the beginning.
        return String::from("a URL with a password");
    }
    // Before an at sign there may be a password.
    let shown = before.rsplit('@').next().unwrap_or_default();
    shown.chars().filter(|character| !character.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_and_queries_are_not_shown() {
        assert_eq!(shown("https://user:s3cr3t@a.example/x?token=s3cr3t"), "a.example/x");
        assert_eq!(shown("https://a.example/x?to=me@s3cr3t"), "https://a.example/x");
        for text in ["https://me:s3cr?3t@a.example/x", "https://me:s3cr#3t@a.example", "me:s3cr?@3t"] {
            assert!(!shown(text).contains("s3cr"), "{text}");
        }
    }
}
