//! The client's cache of the tools that the server has listed, with what the client needs to know to call each tool.
//!
//! A cached tool is valid until the server notifies the client that the tool list has changed. The result of a
//! `tools/list` request that was sent before such a notification is not stored: it may be older than the change.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steadfast_model::error::excerpt;
use steadfast_model::{CallToolResult, Revision, TaskSupport, Tool, ToolAnnotations};
use steadfast_proto::http::params::MirroredParams;

use super::lru::LruMap;
use super::output_schema::CachedOutputSchema;
use crate::error::Error;

/// The limits of the client's tool cache. Tools that are not in the cache can be called too, but without mirrored HTTP
/// headers, and their results are not checked.
const MAX_TOOLS: usize = 4_096;
const MAX_BYTES: usize = 16 << 20;

/// See the [module](self).
pub(crate) struct ClientToolCache {
    /// Whether the client checks the results of tools against their output schemas.
    checks_output: bool,
    state: Mutex<ClientToolCacheState>,
}

struct ClientToolCacheState {
    tools: LruMap<Box<str>, Arc<CachedTool>>,
    /// The number of changes of the server's tool list so far.
    generation: u64,
}

/// What the client needs to know of a tool to call it.
#[derive(PartialEq)]
pub(crate) struct CachedTool {
    /// The arguments that are mirrored into HTTP headers, or why the `x-mcp-header` annotations of the input schema are
    /// invalid.
    mirrored: Result<MirroredParams, Box<str>>,
    /// The tool has the read-only or the idempotent hint.
    idempotent: bool,
    /// Whether a call of the tool runs as an experimental MCP task (2025-11-25).
    task_support: TaskSupport,
    output_schema: Option<CachedOutputSchema>,
}

/// The revision and the transport of a connection: they decide how a tool call is encoded and its result checked.
#[derive(Clone, Copy)]
pub(crate) struct RevisionAndTransport {
    pub(crate) revision: Revision,
    pub(crate) over_http: bool,
}

impl RevisionAndTransport {
    /// Whether the client mirrors arguments of tools into HTTP headers, as it does over HTTP in stateless revisions.
    pub(crate) fn mirrors_arguments(self) -> bool {
        self.over_http && self.revision.is_stateless()
    }

    fn has_structured_content(self) -> bool {
        self.revision.has_structured_output()
    }
}

/// Checks the result of one call of a tool.
pub(crate) struct OutputCheck {
    name: Box<str>,
    tool: Arc<CachedTool>,
}

impl ClientToolCache {
    pub(crate) fn new(checks_output: bool) -> Self {
        Self {
            // Without the feature there is no validator.
            checks_output: checks_output && cfg!(feature = "schema-validation"),
            state: Mutex::new(ClientToolCacheState { tools: LruMap::new(MAX_TOOLS, MAX_BYTES), generation: 0 }),
        }
    }

    /// The generation of the tool list. Read the generation before sending `tools/list`, and pass it to
    /// [`store`](Self::store).
    pub(crate) fn generation(&self) -> u64 {
        self.lock().generation
    }

    /// Stores the tools that the server has listed, if the tool list has not changed since `generation`.
    pub(crate) fn store(&self, generation: u64, listed: &[Tool]) {
        // Schemas are encoded before the lock is taken: drivers wait for it.
        let listed: Vec<(Box<str>, CachedTool)> =
            listed.iter().map(|tool| (Box::from(tool.name.as_str()), CachedTool::new(tool))).collect();
        let mut state = self.lock();
        if state.generation != generation {
            return;
        }
        for (name, tool) in listed {
            // An unchanged tool stays, with its compiled schema.
            if state.tools.get(&name).is_some_and(|before| **before == tool) {
                continue;
            }
            // The map holds two copies of the name.
            let bytes = tool.bytes() + 2 * name.len();
            state.tools.insert(name, Arc::new(tool), bytes);
        }
    }

    /// Removes all tools from the cache, because the server's tool list has changed or may have changed.
    pub(crate) fn clear(&self) {
        let mut state = self.lock();
        state.generation += 1;
        state.tools.retain(|_| false);
    }

    /// Returns the check for the result of a tool that is about to be called; `None` if its result is not checked.
    /// Returns an error if the tool must not be called, because its output schema cannot be used, or its HTTP headers
    /// cannot be derived from its input schema.
    pub(crate) fn prepare_call(&self, wire: RevisionAndTransport, name: &str) -> Result<Option<OutputCheck>, Error> {
        let Some(tool) = self.get(name) else { return Ok(None) };
        if wire.mirrors_arguments()
            && let Err(why) = &tool.mirrored
        {
            return Err(Error::uncallable(
                name,
                format_args!("the tool's `x-mcp-header` annotations are invalid: {why}"),
            ));
        }
        match &tool.output_schema {
            Some(schema) if self.checks_output && wire.has_structured_content() => schema.ensure_usable(name)?,
            _ => return Ok(None),
        }
        Ok(Some(OutputCheck { name: name.into(), tool }))
    }

    /// The cached tool of this name; `None` if the tool cache of the client does not have it.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<CachedTool>> {
        self.lock().tools.get(&Box::from(name)).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, ClientToolCacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CachedTool {
    fn new(tool: &Tool) -> Self {
        Self {
            mirrored: MirroredParams::of_schema(&tool.input_schema).map_err(|why| excerpt(&why.to_string()).into()),
            idempotent: tool.annotations.as_ref().is_some_and(has_idempotent_hint),
            task_support: tool.execution.as_ref().and_then(|execution| execution.task_support).unwrap_or_default(),
            output_schema: tool.output_schema.as_ref().map(CachedOutputSchema::new),
        }
    }

    fn bytes(&self) -> usize {
        let mirrored = self.mirrored.as_ref().map_or_else(|why| why.len(), MirroredParams::bytes);
        size_of::<Self>() + mirrored + self.output_schema.as_ref().map_or(0, CachedOutputSchema::bytes)
    }

    /// Whether the tool has the read-only or the idempotent hint.
    pub(crate) fn is_idempotent(&self) -> bool {
        self.idempotent
    }

    /// Whether a call of the tool runs as an experimental MCP task (2025-11-25).
    pub(crate) fn task_support(&self) -> TaskSupport {
        self.task_support
    }

    /// Calls `header` with each HTTP header that mirrors one of the arguments in the JSON text `arguments`.
    #[cfg_attr(not(feature = "http-client"), allow(dead_code, reason = "only HTTP has headers"))]
    pub(crate) fn each_header(&self, arguments: &str, header: impl FnMut(&str, Cow<'_, str>)) {
        if let Ok(mirrored) = &self.mirrored {
            mirrored.each_header(arguments, header);
        }
    }
}

impl OutputCheck {
    /// Returns an error if the result does not match the output schema of the tool.
    pub(crate) fn check(&self, result: &CallToolResult) -> Result<(), Error> {
        self.tool.output_schema.as_ref().map_or(Ok(()), |schema| schema.check(&self.name, result))
    }
}

fn has_idempotent_hint(annotations: &ToolAnnotations) -> bool {
    annotations.read_only_hint == Some(true) || annotations.idempotent_hint == Some(true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, output: &serde_json::Value) -> Tool {
        Tool::new(name).with_output_schema(output.as_object().cloned().unwrap())
    }

    fn cache_of(tools: &[Tool]) -> ClientToolCache {
        let cache = ClientToolCache::new(true);
        cache.store(0, tools);
        cache
    }

    #[test]
    fn a_list_that_was_requested_before_a_change_is_not_stored() {
        let cache = cache_of(&[Tool::new("a")]);
        let generation = cache.generation();
        cache.clear();
        assert!(cache.get("a").is_none());
        cache.store(generation, &[Tool::new("b")]);
        assert!(cache.get("b").is_none());
        cache.store(cache.generation(), &[Tool::new("b")]);
        assert!(cache.get("b").is_some());
    }

    #[test]
    fn an_unchanged_tool_keeps_its_compiled_schema() {
        let cache = cache_of(&[tool("a", &json!({"type": "object"}))]);
        let first = cache.get("a").unwrap();
        cache.store(0, &[tool("a", &json!({"type": "object"}))]);
        assert!(Arc::ptr_eq(&first, &cache.get("a").unwrap()));
        cache.store(0, &[tool("a", &json!({"type": "array"}))]);
        assert!(!Arc::ptr_eq(&first, &cache.get("a").unwrap()));
    }

    #[test]
    fn the_number_of_tools_is_limited() {
        let listed: Vec<_> = (0..=MAX_TOOLS).map(|number| Tool::new(number.to_string())).collect();
        let cache = cache_of(&listed);
        assert!(cache.get("0").is_none() && cache.get(&MAX_TOOLS.to_string()).is_some());
    }

    #[test]
    fn every_part_of_a_tool_that_is_stored_counts_for_the_byte_limit() {
        let long = || "x".repeat(MAX_BYTES / 3);
        let named = |number: usize| Tool::new(format!("{number}{}", long()));
        let mirroring = |number: usize| {
            let schema = json!({"type": "object", "properties": {
                long(): {"type": "string", "x-mcp-header": format!("H{number}")}}});
            Tool::new(number.to_string()).with_input_schema(schema.as_object().cloned().unwrap())
        };
        let titled = |number: usize| {
            let annotations = ToolAnnotations::new().with_title(long());
            Tool::new(number.to_string()).with_annotations(annotations)
        };
        for (tools, stored) in [
            ((0..4).map(named).collect::<Vec<_>>(), 1),
            ((0..4).map(mirroring).collect(), 2),
            // The title in annotations is not stored.
            ((0..4).map(titled).collect(), 4),
        ] {
            let cache = cache_of(&tools);
            assert_eq!(tools.iter().filter(|tool| cache.get(&tool.name).is_some()).count(), stored);
        }
    }

    #[cfg(not(feature = "schema-validation"))]
    #[test]
    fn without_the_feature_results_are_not_checked() {
        let wire = RevisionAndTransport { revision: Revision::LATEST, over_http: false };
        // Also if the schema could not be compiled.
        let cache = cache_of(&[tool("a", &json!({"$schema": "https://example.com/mine"}))]);
        assert!(cache.prepare_call(wire, "a").unwrap().is_none());
    }

    #[test]
    fn the_read_only_and_the_idempotent_hint_make_a_tool_idempotent() {
        let hinted = |annotations| Tool::new("a").with_annotations(annotations);
        for (tool, idempotent) in [
            (Tool::new("a"), false),
            (hinted(ToolAnnotations::new().with_read_only_hint(false)), false),
            (hinted(ToolAnnotations::new().with_read_only_hint(true)), true),
            (hinted(ToolAnnotations::new().with_idempotent_hint(true)), true),
        ] {
            assert_eq!(cache_of(&[tool]).get("a").unwrap().is_idempotent(), idempotent);
        }
    }
}
