//! `Accept` and `Content-Type`.

use super::{Headers, SingleHeader};

/// The media types that a client accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Accepts {
    /// `application/json`.
    pub json: bool,
    /// `text/event-stream`.
    pub events: bool,
}

impl Accepts {
    /// Reads the `Accept` headers; without an `Accept` header, every media type is accepted.
    pub fn of(headers: &(impl Headers + ?Sized)) -> Self {
        let mut found = Self { json: false, events: false };
        let mut any = false;
        for value in headers.values("accept") {
            any = true;
            for range in value.split(|byte| *byte == b',') {
                found.note(range);
            }
        }
        if any { found } else { Self { json: true, events: true } }
    }

    /// Whether the client accepts both JSON and event streams, as it has to: the server chooses the media type of the response
    /// to a POST.
    pub fn both(self) -> bool {
        self.json && self.events
    }

    fn note(&mut self, range: &[u8]) {
        let mut parts = range.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let kind = parts.next().unwrap_or_default();
        if parts.any(is_zero_weight) {
            return;
        }
        let is = |names: [&[u8]; 3]| names.iter().any(|name| kind.eq_ignore_ascii_case(name));
        self.json |= is([b"application/json", b"application/*", b"*/*"]);
        self.events |= is([b"text/event-stream", b"text/*", b"*/*"]);
    }
}

/// Whether a parameter in `Accept` is `q=0` or `q=0.000`, which means that the media type is not accepted.
fn is_zero_weight(parameter: &[u8]) -> bool {
    let weight = parameter.strip_prefix(b"q=").or_else(|| parameter.strip_prefix(b"Q="));
    weight.is_some_and(|weight| !weight.is_empty() && weight.iter().all(|byte| matches!(byte, b'0' | b'.')))
}

/// Whether the `Content-Type` of a POST is JSON.
pub fn is_json(headers: &(impl Headers + ?Sized)) -> bool {
    let SingleHeader::Value(value) = SingleHeader::of(headers, "content-type") else { return false };
    let (kind, parameters) = value.split_once(';').unwrap_or((value, ""));
    let utf8 = parameters.split(';').all(|parameter| {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        !name.trim().eq_ignore_ascii_case("charset") || value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
    });
    kind.trim().eq_ignore_ascii_case("application/json") && utf8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(values: &[&str]) -> (bool, bool) {
        let headers: Vec<(&str, &str)> = values.iter().map(|value| ("accept", *value)).collect();
        let Accepts { json, events } = Accepts::of(headers.as_slice());
        (json, events)
    }

    #[test]
    fn both_kinds_are_found_in_one_header_or_in_two() {
        assert_eq!(accepts(&["application/json, text/event-stream"]), (true, true));
        assert_eq!(accepts(&["Application/JSON;q=0.5", "text/event-stream;charset=utf-8"]), (true, true));
        assert_eq!(accepts(&["application/json"]), (true, false));
        assert_eq!(accepts(&["text/html"]), (false, false));
    }

    #[test]
    fn wildcards_and_a_missing_header_accept_everything() {
        assert_eq!(accepts(&["*/*"]), (true, true));
        assert_eq!(accepts(&["text/*"]), (false, true));
        assert_eq!(accepts(&[]), (true, true));
    }

    #[test]
    fn a_quality_of_zero_excludes_a_media_type() {
        assert_eq!(accepts(&["application/json, text/event-stream; q=0.0"]), (true, false));
    }

    #[test]
    fn only_json_in_utf8_is_json() {
        let json = |value: &str| is_json([("content-type", value)].as_slice());
        assert!(json("application/json") && json("Application/Json; charset=UTF-8") && json("application/json;x=y"));
        assert!(!json("text/plain") && !json("application/json; charset=latin1") && !json("application/jsonp"));
        assert!(!is_json([].as_slice()));
    }
}
