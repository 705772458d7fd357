//! The parameters of a message: their JSON text with an index of its members.
//!
//! The pass of the parser over the message records where the first few members of `params` are, so that `name`, `arguments` or
//! `_meta` are found without another pass.

use std::borrow::Cow;
use std::ops::Range;

use crate::json::{self, JsonError, JsonScanner};

/// The maximum number of members of `params` that are indexed: parameters with more members are parsed again to find the
/// others. The parameters of requests to MCP servers have at most five members.
const INDEXED: usize = 6;

/// Where the members of a JSON object are, relative to the beginning of its text.
#[derive(Debug, Clone, Default)]
pub(super) struct MemberIndex {
    members: [MemberRange; INDEXED],
    length: usize,
    /// The index of members is incomplete: there are more members than it can hold, or a key contains an escape.
    partial: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct MemberRange {
    key: (u32, u32),
    value: (u32, u32),
}

/// Reads the value of the member `params` of a message. Returns an index of the members if `params` is an object.
pub(super) fn walk(walker: &mut JsonScanner<'_>, text: &str) -> Result<(Range<usize>, Option<MemberIndex>), JsonError> {
    if walker.peek() != Some(b'{') {
        return Ok((walker.value(1)?, None));
    }
    let mut index = MemberIndex::default();
    let start = walker.position();
    walker.members(|walker, key| {
        let value = walker.value(2)?;
        index.note(text, start, key, value);
        Ok(())
    })?;
    Ok((start..walker.position(), Some(index)))
}

impl MemberIndex {
    fn note(&mut self, text: &str, start: usize, key: Range<usize>, value: Range<usize>) {
        let escaped = text.get(key.clone()).is_none_or(|key| key.contains('\\'));
        let relative = |range: Range<usize>| {
            let begin = u32::try_from(range.start.checked_sub(start)?).ok()?;
            let end = u32::try_from(range.end.checked_sub(start)?).ok()?;
            Some((begin, end))
        };
        match (self.members.get_mut(self.length), relative(key), relative(value)) {
            (Some(slot), Some(key), Some(value)) if !escaped => {
                *slot = MemberRange { key, value };
                self.length += 1;
            }
            _ => self.partial = true,
        }
    }

    fn get<'a>(&self, text: &'a str, wanted: &str) -> Option<&'a str> {
        if self.partial {
            let mut found = None;
            json::each_member(text, |key, value| {
                if key == wanted {
                    found = Some(value);
                }
            });
            return found;
        }
        let slice = |(begin, end): (u32, u32)| text.get(usize::try_from(begin).ok()?..usize::try_from(end).ok()?);
        let members = self.members.get(..self.length)?;
        // The last of several with the same name, as in a serde map.
        members.iter().rev().find(|member| slice(member.key) == Some(wanted)).and_then(|member| slice(member.value))
    }
}

/// The parameters of a request or notification, borrowed from the text of the message.
#[derive(Debug, Clone)]
pub struct Params<'a> {
    text: &'a str,
    index: MemberIndex,
}

impl<'a> Params<'a> {
    pub(super) fn new(text: &'a str, index: MemberIndex) -> Self {
        Self { text, index }
    }

    /// The parameters of a message without `params`, which are an empty JSON object.
    pub fn absent() -> Self {
        Self { text: "{}", index: MemberIndex::default() }
    }

    /// The JSON text of the parameters, which is always an object.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The JSON text of a member of the parameters.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.index.get(self.text, name)
    }

    /// A member of the parameters, if it is a string.
    pub fn get_string(&self, name: &str) -> Option<Cow<'a, str>> {
        let text = self.get(name)?;
        json::unescape(text.strip_prefix('"')?.strip_suffix('"')?)
    }

    /// A copy of the parameters that outlives the message.
    pub fn to_owned(&self) -> OwnedParams {
        OwnedParams { text: self.text.into(), index: self.index.clone() }
    }
}

/// The parameters of a message, with a copy of their text.
#[derive(Debug, Clone)]
pub struct OwnedParams {
    text: Box<str>,
    index: MemberIndex,
}

impl OwnedParams {
    /// The JSON text of the parameters, which is always an object.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The JSON text of a member of the parameters.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.index.get(&self.text, name)
    }

    /// A member of the parameters, if it is a string.
    pub fn get_string(&self, name: &str) -> Option<Cow<'_, str>> {
        let text = self.get(name)?;
        json::unescape(text.strip_prefix('"')?.strip_suffix('"')?)
    }

    /// The range of a member's value in [`OwnedParams::text`].
    pub fn range_of(&self, name: &str) -> Option<Range<usize>> {
        let value = self.get(name)?;
        let start = value.as_ptr().addr().checked_sub(self.text.as_ptr().addr())?;
        Some(start..start + value.len())
    }

    /// The text.
    pub fn into_text(self) -> Box<str> {
        self.text
    }
}
