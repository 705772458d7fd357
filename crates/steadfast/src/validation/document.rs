//! A JSON Schema as a document: how large it is, and what its references refer to.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;

use super::limits;
use super::schema_cost::{SubschemaNode, check_limit};

/// Finds the targets of the references in a JSON Schema by name.
pub(super) struct SchemaIndex<'a> {
    root: &'a Value,
    /// Schemas with an `$id`, by the last segment of its path. The base URI of an `$id` does not matter here.
    identified: HashMap<&'a str, Vec<&'a Value>>,
    anchors: HashMap<&'a str, Vec<&'a Value>>,
}

impl<'a> SchemaIndex<'a> {
    /// Indexes a JSON Schema; an error if the schema is too long or nested too deeply. Never recurses.
    pub(super) fn of(root: &'a Value) -> Result<Self, String> {
        let mut document = Self { root, identified: HashMap::new(), anchors: HashMap::new() };
        let mut remaining = vec![(root, 1)];
        while let Some((value, depth)) = remaining.pop() {
            match value {
                Value::Object(members) => {
                    check_limit("levels of nesting", depth, limits::DEPTH)?;
                    document.index_names(value);
                    remaining.extend(members.values().map(|inner| (inner, depth + 1)));
                }
                Value::Array(elements) => {
                    check_limit("levels of nesting", depth, limits::DEPTH)?;
                    remaining.extend(elements.iter().map(|inner| (inner, depth + 1)));
                }
                _ => {}
            }
        }
        // The nesting is bounded by now, so encoding it does not recurse deeply.
        check_limit("bytes", root.to_string().len(), limits::BYTES)?;
        Ok(document)
    }

    fn index_names(&mut self, value: &'a Value) {
        for keyword in ["$id", "id"] {
            let Some(id) = value.get(keyword).and_then(Value::as_str) else { continue };
            match id.strip_prefix('#') {
                Some(anchor) => self.anchors.entry(anchor).or_default().push(value),
                None => self.identified.entry(last_segment(id)).or_default().push(value),
            }
        }
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(anchor) = value.get(keyword).and_then(Value::as_str) {
                self.anchors.entry(anchor).or_default().push(value);
            }
        }
    }

    /// All subschemas that a reference in the schema resource `resource` may refer to.
    pub(super) fn targets(&self, reference: &str, resource: &'a Value) -> Vec<SubschemaNode<'a>> {
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let resources = self.resources(uri, resource);
        let fragment = percent_decode(fragment);
        if !fragment.is_empty() && !fragment.starts_with('/') {
            let found = self.anchors.get(&*fragment).into_iter().flatten();
            return found.map(|schema| SubschemaNode { schema, resource }).collect();
        }
        let mut found = schemas_at(&resources, &fragment);
        if found.is_empty() {
            // A pointer that crosses an `$id`, or a name in another spelling.
            found = schemas_at(&self.all_resources(), &fragment);
        }
        found
    }

    fn resources(&self, uri: &str, resource: &'a Value) -> Vec<&'a Value> {
        if uri.is_empty() {
            return vec![resource];
        }
        self.identified.get(last_segment(uri)).cloned().unwrap_or_else(|| self.all_resources())
    }

    fn all_resources(&self) -> Vec<&'a Value> {
        self.identified.values().flatten().copied().chain([self.root]).collect()
    }
}

fn schemas_at<'a>(resources: &[&'a Value], pointer: &str) -> Vec<SubschemaNode<'a>> {
    let found = resources.iter().filter_map(|resource| Some((*resource, resource.pointer(pointer)?)));
    found.map(|(resource, schema)| SubschemaNode { schema, resource }).collect()
}

fn last_segment(uri: &str) -> &str {
    let path = uri.split('#').next().unwrap_or(uri);
    path.rsplit('/').next().unwrap_or(path)
}

/// Decodes the fragment of a reference, which is percent-encoded, whereas the names in a schema are not.
fn percent_decode(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            bytes.push(byte);
            rest = after.get(2..).unwrap_or_default();
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}
