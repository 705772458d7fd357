//! How large a schema is, and how costly a check by it can get.
//!
//! A schema is a graph: references join its subschemas. One walk over it, which never recurses, finds what
//! [`limits`](super::limits) bounds. Where it cannot tell what a reference refers to (relative URIs
//! below several `$id`s) it assumes the worst of what it may be.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::dialect::Dialect;
use super::document::Document;
use super::limits;

/// What was found of a schema that keeps within the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Measure {
    /// The most subschemas that apply to one value, each because of the one before.
    pub(super) chain: usize,
    /// The most ways in which a value and what is inside of it are reached: two if both branches of an `anyOf` look at the
    /// elements of an array.
    pub(super) ways: usize,
}

impl Measure {
    /// Measures a schema; the error says which limit it breaks.
    pub(super) fn of(schema: &Value) -> Result<Self, String> {
        let document = Document::of(schema)?;
        let mut walk = Walk { document, done: HashMap::new(), open: HashSet::new(), edges: 0 };
        let mut measure = Self { chain: 0, ways: 1 };
        walk.run(schema, &mut measure)?;
        Ok(measure)
    }
}

/// How a subschema stands to the one that leads to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    /// It applies to the same value.
    InPlace,
    /// It applies to something inside of the value.
    Inside,
    /// It stands there to be referred to.
    Aside,
}

/// A subschema, and the schema that references in it are relative to.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    pub(super) schema: &'a Value,
    pub(super) resource: &'a Value,
}

impl<'a> Node<'a> {
    fn below(self, schema: &'a Value) -> Self {
        let own = schema.get("$id").or_else(|| schema.get("id")).and_then(Value::as_str);
        // `#name` is an anchor of older drafts.
        let resource = if own.is_some_and(|id| !id.starts_with('#')) { schema } else { self.resource };
        Self { schema, resource }
    }
}

/// What a subschema and all that it leads to come to.
#[derive(Clone, Copy)]
struct Sums {
    expanded: usize,
    chain: usize,
    ways: usize,
}

struct Frame<'a> {
    schema: *const Value,
    edge: Edge,
    sums: Sums,
    left: Vec<(Edge, Node<'a>)>,
}

struct Walk<'a> {
    document: Document<'a>,
    done: HashMap<*const Value, Sums>,
    open: HashSet<*const Value>,
    edges: usize,
}

impl<'a> Walk<'a> {
    fn run(&mut self, root: &'a Value, measure: &mut Measure) -> Result<(), String> {
        let mut stack = vec![self.enter(Edge::Aside, Node { schema: root, resource: root })?];
        while let Some(frame) = stack.last_mut() {
            let Some((edge, node)) = frame.left.pop() else {
                let Some(ended) = stack.pop() else { break };
                self.leave(&ended, measure)?;
                if let Some(parent) = stack.last_mut() {
                    parent.sums.add(ended.edge, ended.sums);
                }
                continue;
            };
            let address = std::ptr::from_ref(node.schema);
            if let Some(sums) = self.done.get(&address) {
                frame.sums.add(edge, *sums);
            } else if self.open.contains(&address) {
                frame.sums.add(edge, Sums { expanded: 1, chain: 1, ways: 0 });
            } else {
                stack.push(self.enter(edge, node)?);
            }
        }
        Ok(())
    }

    fn enter(&mut self, edge: Edge, node: Node<'a>) -> Result<Frame<'a>, String> {
        Dialect::of(node.schema)?;
        let left = self.edges_of(node);
        self.edges = self.edges.saturating_add(left.len());
        within("subschemas with all references written out", self.edges, limits::EXPANDED)?;
        let address = std::ptr::from_ref(node.schema);
        self.open.insert(address);
        let inside = left.iter().any(|(edge, _)| *edge == Edge::Inside);
        let sums = Sums { expanded: 1, chain: 1, ways: usize::from(inside) };
        Ok(Frame { schema: address, edge, sums, left })
    }

    fn leave(&mut self, frame: &Frame<'_>, measure: &mut Measure) -> Result<(), String> {
        self.open.remove(&frame.schema);
        self.done.insert(frame.schema, frame.sums);
        within("subschemas", self.done.len(), limits::SUBSCHEMAS)?;
        within("subschemas with all references written out", frame.sums.expanded, limits::EXPANDED)?;
        within("subschemas in a chain that apply to one value", frame.sums.chain, limits::CHAIN)?;
        measure.chain = measure.chain.max(frame.sums.chain);
        measure.ways = measure.ways.max(frame.sums.ways);
        Ok(())
    }

    /// The keywords of all dialects. What one does not know is counted all the same.
    fn edges_of(&self, node: Node<'a>) -> Vec<(Edge, Node<'a>)> {
        let mut found = Vec::new();
        let Value::Object(members) = node.schema else { return found };
        for (keyword, value) in members {
            let edge = match keyword.as_str() {
                "$ref" | "$dynamicRef" | "$recursiveRef" => {
                    let targets = self.document.targets(value.as_str().unwrap_or_default(), node.resource);
                    found.extend(targets.into_iter().map(|target| (Edge::InPlace, target)));
                    continue;
                }
                "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentSchemas" | "dependencies" => {
                    Edge::InPlace
                }
                "properties"
                | "patternProperties"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "propertyNames"
                | "items"
                | "prefixItems"
                | "additionalItems"
                | "unevaluatedItems"
                | "contains" => Edge::Inside,
                "$defs" | "definitions" | "contentSchema" => Edge::Aside,
                _ => continue,
            };
            let many = matches!(
                keyword.as_str(),
                "properties" | "patternProperties" | "dependentSchemas" | "dependencies" | "$defs" | "definitions"
            );
            match value {
                Value::Array(schemas) => found.extend(schemas.iter().map(|schema| (edge, node.below(schema)))),
                Value::Object(schemas) if many => {
                    found.extend(schemas.values().map(|schema| (edge, node.below(schema))));
                }
                schema => found.push((edge, node.below(schema))),
            }
        }
        found
    }
}

impl Sums {
    fn add(&mut self, edge: Edge, other: Self) {
        if edge == Edge::Aside {
            return;
        }
        self.expanded = self.expanded.saturating_add(other.expanded);
        if edge == Edge::InPlace {
            self.chain = self.chain.max(other.chain.saturating_add(1));
            self.ways = self.ways.saturating_add(other.ways);
        }
    }
}

pub(super) fn within(what: &str, found: usize, limit: usize) -> Result<(), String> {
    if found <= limit { Ok(()) } else { Err(format!("it has more {what} than {limit}, which is the limit")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn complaint(schema: &Value) -> String {
        Measure::of(schema).expect_err("a schema beyond the limits")
    }

    /// `a0` says twice what `a1` says, and so on.
    fn doubling(levels: usize, first: &str) -> Value {
        let definitions: serde_json::Map<String, Value> = (0..levels)
            .map(|level| {
                let next = json!({ "$ref": format!("#/$defs/a{}", level + 1) });
                (format!("a{level}"), json!({ "allOf": [next, next] }))
            })
            .chain([(format!("a{levels}"), json!({ "type": "integer" }))])
            .collect();
        json!({ "$ref": first, "$defs": definitions })
    }

    fn nested(levels: usize, around: impl Fn(Value) -> Value) -> Value {
        (0..levels).fold(json!({ "type": "integer" }), |inner, _| around(inner))
    }

    #[test]
    fn an_ordinary_schema_is_measured() {
        let schema = json!({ "properties": { "a": { "type": "string" }, "b": { "items": { "minimum": 1 } } } });
        assert_eq!(Measure::of(&schema), Ok(Measure { chain: 1, ways: 1 }));
        let recursive = json!({ "anyOf": [{ "type": "string" }, { "items": { "$ref": "#" } }] });
        assert_eq!(Measure::of(&recursive), Ok(Measure { chain: 2, ways: 1 }));
        let branching = json!({ "anyOf": [{ "items": { "$ref": "#" } }, { "maxItems": 3, "items": { "$ref": "#" } }] });
        assert_eq!(Measure::of(&branching).map(|measure| measure.ways), Ok(2));
    }

    #[test]
    fn references_that_double_each_other_are_counted_as_often_as_they_are_followed() {
        assert!(Measure::of(&doubling(10, "#/$defs/a0")).is_ok());
        assert!(complaint(&doubling(40, "#/$defs/a0")).contains("references written out"));
    }

    #[test]
    fn references_are_followed_by_pointer_anchor_and_id() {
        let inner = doubling(40, "#/$defs/a0");
        assert!(complaint(&doubling(40, "#/%24defs/a0")).contains("written out"));
        let mut anchored = inner.clone();
        anchored["$id"] = json!("https://example.com/deep/inner");
        anchored["$anchor"] = json!("here");
        for reference in ["inner", "#here", "https://example.com/deep/inner", "./inner#", "inner#/$defs/a0"] {
            let schema = json!({ "$id": "https://example.com/deep/", "not": { "$ref": reference }, "x": anchored });
            assert!(complaint(&schema).contains("written out"), "{reference}");
            let dynamic = json!({ "$id": "https://example.com/deep/", "$dynamicRef": reference, "x": anchored });
            assert!(complaint(&dynamic).contains("written out"), "{reference}");
        }
    }

    #[test]
    fn a_schema_that_leads_back_to_itself_has_an_end() {
        let around =
            json!({ "$ref": "#/$defs/a", "$defs": { "a": { "not": { "$ref": "#/$defs/b" } }, "b": { "$ref": "#" } } });
        assert!(Measure::of(&around).is_ok());
        assert!(Measure::of(&json!({ "$dynamicRef": "#self", "$dynamicAnchor": "self" })).is_ok());
        assert!(Measure::of(&json!({ "$recursiveRef": "#", "$recursiveAnchor": true })).is_ok());
    }

    #[test]
    fn a_long_chain_for_one_value_is_refused() {
        let definitions: serde_json::Map<String, Value> = (0..limits::CHAIN)
            .map(|link| (format!("a{link}"), json!({ "$ref": format!("#/$defs/a{}", link + 1) })))
            .collect();
        let schema = json!({ "$ref": "#/$defs/a0", "$defs": definitions });
        assert!(complaint(&schema).contains("in a chain that apply to one value"));
    }

    #[test]
    fn nesting_is_bounded_whatever_it_consists_of() {
        let levels = limits::DEPTH / 2;
        assert!(Measure::of(&nested(levels - 1, |inner| json!({ "not": inner }))).is_ok());
        for deep in [
            nested(limits::DEPTH, |inner| json!({ "items": inner })),
            nested(levels, |inner| json!({ "allOf": [inner] })),
            json!({ "default": nested(limits::DEPTH, |inner| json!([inner])) }),
        ] {
            assert!(complaint(&deep).contains("levels of nesting"));
        }
    }

    #[test]
    fn size_is_bounded() {
        let long = json!({ "description": "x".repeat(limits::BYTES) });
        assert!(complaint(&long).contains("bytes"));
        let many = json!({ "anyOf": vec![json!(true); limits::SUBSCHEMAS] });
        assert!(complaint(&many).contains("subschemas than"));
    }

    #[test]
    fn a_subschema_of_an_unknown_dialect_is_found() {
        let inner = json!({ "$id": "inner", "$schema": "https://example.com/dialect" });
        assert!(complaint(&json!({ "items": { "not": inner } })).contains("is not supported"));
        // It is data here, and no schema.
        assert!(Measure::of(&json!({ "const": { "$schema": "https://example.com/dialect" } })).is_ok());
    }
}
