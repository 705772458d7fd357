//! The size of a JSON Schema, and the worst-case cost of a check against it.
//!
//! A schema is a graph: references connect its subschemas. One walk over the graph of subschemas, which never recurses,
//! computes the numbers that [`limits`](super::limits) bounds. If the walk cannot tell what a reference refers to
//! (relative URIs below several `$id`s), it assumes the worst case.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::dialect::Dialect;
use super::document::SchemaIndex;
use super::limits;

/// The worst-case cost of checks against a schema that is within the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SchemaCost {
    /// The length of the longest chain of subschemas that apply to the same value, each because of the one before (`$ref`, `allOf`).
    pub(super) chain: usize,
    /// The maximum number of paths on which a check reaches the parts of a value: two if both branches of an `anyOf`
    /// check the elements of an array.
    pub(super) branching: usize,
}

impl SchemaCost {
    /// Measures a schema; the error names the limit that the schema exceeds.
    pub(super) fn of(schema: &Value) -> Result<Self, String> {
        let document = SchemaIndex::of(schema)?;
        let mut walk = SchemaCostWalker { document, done: HashMap::new(), in_progress: HashSet::new(), edges: 0 };
        let mut cost = Self { chain: 0, branching: 1 };
        walk.run(schema, &mut cost)?;
        Ok(cost)
    }
}

/// How a subschema relates to the one that contains or references it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SubschemaEdge {
    /// The subschema applies to the same value.
    InPlace,
    /// The subschema applies to a part of the value: a property or an array item.
    Part,
    /// The subschema is a definition: it applies only where a reference names it.
    Definition,
}

/// A subschema, and the schema resource that its references are relative to.
#[derive(Clone, Copy)]
pub(super) struct SubschemaNode<'a> {
    pub(super) schema: &'a Value,
    pub(super) resource: &'a Value,
}

impl<'a> SubschemaNode<'a> {
    fn below(self, schema: &'a Value) -> Self {
        let own = schema.get("$id").or_else(|| schema.get("id")).and_then(Value::as_str);
        // `#name` is an anchor of older drafts.
        let resource = if own.is_some_and(|id| !id.starts_with('#')) { schema } else { self.resource };
        Self { schema, resource }
    }
}

/// The total cost of a subschema and of all subschemas that it applies.
#[derive(Clone, Copy)]
struct SubschemaCost {
    expanded: usize,
    chain: usize,
    branching: usize,
}

struct SchemaStackFrame<'a> {
    schema: *const Value,
    edge: SubschemaEdge,
    totals: SubschemaCost,
    remaining: Vec<(SubschemaEdge, SubschemaNode<'a>)>,
}

struct SchemaCostWalker<'a> {
    document: SchemaIndex<'a>,
    done: HashMap<*const Value, SubschemaCost>,
    in_progress: HashSet<*const Value>,
    edges: usize,
}

impl<'a> SchemaCostWalker<'a> {
    fn run(&mut self, root: &'a Value, cost: &mut SchemaCost) -> Result<(), String> {
        let mut stack = vec![self.enter(SubschemaEdge::Definition, SubschemaNode { schema: root, resource: root })?];
        while let Some(frame) = stack.last_mut() {
            let Some((edge, node)) = frame.remaining.pop() else {
                let Some(ended) = stack.pop() else { break };
                self.leave(&ended, cost)?;
                if let Some(parent) = stack.last_mut() {
                    parent.totals.add(ended.edge, ended.totals);
                }
                continue;
            };
            let address = std::ptr::from_ref(node.schema);
            if let Some(totals) = self.done.get(&address) {
                frame.totals.add(edge, *totals);
            } else if self.in_progress.contains(&address) {
                frame.totals.add(edge, SubschemaCost { expanded: 1, chain: 1, branching: 0 });
            } else {
                stack.push(self.enter(edge, node)?);
            }
        }
        Ok(())
    }

    fn enter(&mut self, edge: SubschemaEdge, node: SubschemaNode<'a>) -> Result<SchemaStackFrame<'a>, String> {
        Dialect::of(node.schema)?;
        let remaining = self.edges_of(node);
        self.edges = self.edges.saturating_add(remaining.len());
        check_limit("subschemas after expanding references", self.edges, limits::EXPANDED)?;
        let address = std::ptr::from_ref(node.schema);
        self.in_progress.insert(address);
        let reaches_parts = remaining.iter().any(|(edge, _)| *edge == SubschemaEdge::Part);
        let totals = SubschemaCost { expanded: 1, chain: 1, branching: usize::from(reaches_parts) };
        Ok(SchemaStackFrame { schema: address, edge, totals, remaining })
    }

    fn leave(&mut self, frame: &SchemaStackFrame<'_>, cost: &mut SchemaCost) -> Result<(), String> {
        self.in_progress.remove(&frame.schema);
        self.done.insert(frame.schema, frame.totals);
        check_limit("subschemas", self.done.len(), limits::SUBSCHEMAS)?;
        check_limit("subschemas after expanding references", frame.totals.expanded, limits::EXPANDED)?;
        check_limit("subschemas in a chain that apply to one value", frame.totals.chain, limits::CHAIN)?;
        cost.chain = cost.chain.max(frame.totals.chain);
        cost.branching = cost.branching.max(frame.totals.branching);
        Ok(())
    }

    /// The subschemas that a schema contains or references. Keywords that the declared dialect of the schema does not
    /// have are counted too.
    fn edges_of(&self, node: SubschemaNode<'a>) -> Vec<(SubschemaEdge, SubschemaNode<'a>)> {
        let mut found = Vec::new();
        let Value::Object(members) = node.schema else { return found };
        for (keyword, value) in members {
            let edge = match keyword.as_str() {
                "$ref" | "$dynamicRef" | "$recursiveRef" => {
                    let targets = self.document.targets(value.as_str().unwrap_or_default(), node.resource);
                    found.extend(targets.into_iter().map(|target| (SubschemaEdge::InPlace, target)));
                    continue;
                }
                "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentSchemas" | "dependencies" => {
                    SubschemaEdge::InPlace
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
                | "contains" => SubschemaEdge::Part,
                "$defs" | "definitions" | "contentSchema" => SubschemaEdge::Definition,
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

impl SubschemaCost {
    fn add(&mut self, edge: SubschemaEdge, other: Self) {
        if edge == SubschemaEdge::Definition {
            return;
        }
        self.expanded = self.expanded.saturating_add(other.expanded);
        if edge == SubschemaEdge::InPlace {
            self.chain = self.chain.max(other.chain.saturating_add(1));
            self.branching = self.branching.saturating_add(other.branching);
        }
    }
}

pub(super) fn check_limit(what: &str, found: usize, limit: usize) -> Result<(), String> {
    if found <= limit { Ok(()) } else { Err(format!("the schema has more {what} than the limit of {limit}")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn complaint(schema: &Value) -> String {
        SchemaCost::of(schema).expect_err("a schema beyond the limits")
    }

    /// `a0` refers twice to `a1`, and so on.
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
        assert_eq!(SchemaCost::of(&schema), Ok(SchemaCost { chain: 1, branching: 1 }));
        let recursive = json!({ "anyOf": [{ "type": "string" }, { "items": { "$ref": "#" } }] });
        assert_eq!(SchemaCost::of(&recursive), Ok(SchemaCost { chain: 2, branching: 1 }));
        let branching = json!({ "anyOf": [{ "items": { "$ref": "#" } }, { "maxItems": 3, "items": { "$ref": "#" } }] });
        assert_eq!(SchemaCost::of(&branching).map(|cost| cost.branching), Ok(2));
    }

    #[test]
    fn references_that_double_each_other_are_counted_as_often_as_they_are_followed() {
        assert!(SchemaCost::of(&doubling(10, "#/$defs/a0")).is_ok());
        assert!(complaint(&doubling(40, "#/$defs/a0")).contains("expanding references"));
    }

    #[test]
    fn references_are_followed_by_pointer_anchor_and_id() {
        let inner = doubling(40, "#/$defs/a0");
        assert!(complaint(&doubling(40, "#/%24defs/a0")).contains("expanding references"));
        let mut anchored = inner.clone();
        anchored["$id"] = json!("https://example.com/deep/inner");
        anchored["$anchor"] = json!("here");
        for reference in ["inner", "#here", "https://example.com/deep/inner", "./inner#", "inner#/$defs/a0"] {
            let schema = json!({ "$id": "https://example.com/deep/", "not": { "$ref": reference }, "x": anchored });
            assert!(complaint(&schema).contains("expanding references"), "{reference}");
            let dynamic = json!({ "$id": "https://example.com/deep/", "$dynamicRef": reference, "x": anchored });
            assert!(complaint(&dynamic).contains("expanding references"), "{reference}");
        }
    }

    #[test]
    fn a_recursive_schema_is_measured() {
        let around =
            json!({ "$ref": "#/$defs/a", "$defs": { "a": { "not": { "$ref": "#/$defs/b" } }, "b": { "$ref": "#" } } });
        assert!(SchemaCost::of(&around).is_ok());
        assert!(SchemaCost::of(&json!({ "$dynamicRef": "#self", "$dynamicAnchor": "self" })).is_ok());
        assert!(SchemaCost::of(&json!({ "$recursiveRef": "#", "$recursiveAnchor": true })).is_ok());
    }

    #[test]
    fn a_long_chain_for_one_value_is_rejected() {
        let definitions: serde_json::Map<String, Value> = (0..limits::CHAIN)
            .map(|link| (format!("a{link}"), json!({ "$ref": format!("#/$defs/a{}", link + 1) })))
            .collect();
        let schema = json!({ "$ref": "#/$defs/a0", "$defs": definitions });
        assert!(complaint(&schema).contains("in a chain that apply to one value"));
    }

    #[test]
    fn nesting_is_bounded_whatever_it_consists_of() {
        let levels = limits::DEPTH / 2;
        assert!(SchemaCost::of(&nested(levels - 1, |inner| json!({ "not": inner }))).is_ok());
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
        assert!(SchemaCost::of(&json!({ "const": { "$schema": "https://example.com/dialect" } })).is_ok());
    }
}
