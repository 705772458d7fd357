//! The tools that the server has listed, as far as a client has to know them to call them.
//!
//! What was listed is believed until the server says that its list has changed. A listing that was asked for before that is
//! not: it may be older than the change.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steadfast_model::error::excerpt;
use steadfast_model::{CallToolResult, Revision, TaskSupport, Tool, ToolAnnotations};
use steadfast_proto::http::params::MirroredParams;

use super::bounded::LruMap;
use super::output_schema::OutputSchema;
use crate::error::Error;

/// So many tools are known, and so many bytes of what is kept of them. The others are called all the same.
const MOST: usize = 4_096;
const BYTES: usize = 16 << 20;

/// See the [module](self).
pub(crate) struct KnownTools {
    /// Whether what tools answer is checked.
    checks_output: bool,
    state: Mutex<State>,
}

struct State {
    tools: LruMap<Box<str>, Arc<KnownTool>>,
    /// How often the list has changed.
    generation: u64,
}

/// What is known of a tool.
#[derive(PartialEq)]
pub(crate) struct KnownTool {
    /// Which arguments are mirrored into headers, or why nobody can say.
    mirrored: Result<MirroredParams, Box<str>>,
    /// Calling it twice does no more than calling it once, by its own word.
    may_be_repeated: bool,
    /// Whether it runs as a task of 2025-11-25.
    task: TaskSupport,
    output: Option<OutputSchema>,
}

/// What a call goes over.
#[derive(Clone, Copy)]
pub(crate) struct Wire {
    pub(crate) revision: Revision,
    pub(crate) http: bool,
}

impl Wire {
    /// Whether arguments are mirrored into headers.
    pub(crate) fn mirrors(self) -> bool {
        self.http && self.revision.is_modern()
    }

    fn has_structured_content(self) -> bool {
        self.revision >= Revision::V2025_06_18
    }
}

/// A tool that is called, and whose answer is to be checked.
pub(crate) struct CalledTool {
    name: Box<str>,
    known: Arc<KnownTool>,
}

impl KnownTools {
    pub(crate) fn new(checks_output: bool) -> Self {
        Self {
            // Without the feature nothing is held against a schema.
            checks_output: checks_output && cfg!(feature = "schema-validation"),
            state: Mutex::new(State { tools: LruMap::new(MOST, BYTES), generation: 0 }),
        }
    }

    /// How often the list has changed: to be taken before it is asked for.
    pub(crate) fn generation(&self) -> u64 {
        self.lock().generation
    }

    /// Takes note of what was listed, if the list has not changed since it was asked for.
    pub(crate) fn note(&self, generation: u64, listed: &[Tool]) {
        // Drivers wait for the lock: schemas are read without it.
        let listed: Vec<(Box<str>, KnownTool)> =
            listed.iter().map(|tool| (Box::from(tool.name.as_str()), KnownTool::new(tool))).collect();
        let mut state = self.lock();
        if state.generation != generation {
            return;
        }
        for (name, known) in listed {
            // What was compiled for it stays.
            if state.tools.get(&name).is_some_and(|before| **before == known) {
                continue;
            }
            // The name stands in two places: by itself, and by when it was used.
            let bytes = known.bytes() + 2 * name.len();
            state.tools.insert(name, Arc::new(known), bytes);
        }
    }

    /// The list has changed, or may have: nothing of it is believed.
    pub(crate) fn forget(&self) {
        let mut state = self.lock();
        state.generation += 1;
        state.tools.retain(|_| false);
    }

    /// A tool is about to be called; `None` if its answer is not checked. The error says why it is not to be called: its
    /// answer should be checked and could not, or nobody can say which headers it wants.
    pub(crate) fn call(&self, over: Wire, name: &str) -> Result<Option<CalledTool>, Error> {
        let Some(known) = self.get(name) else { return Ok(None) };
        if over.mirrors()
            && let Err(why) = &known.mirrored
        {
            return Err(Error::uncallable(
                name,
                format_args!("over HTTP nobody can say which headers it wants: {why}"),
            ));
        }
        match &known.output {
            Some(output) if self.checks_output && over.has_structured_content() => output.can_be_read(name)?,
            _ => return Ok(None),
        }
        Ok(Some(CalledTool { name: name.into(), known }))
    }

    /// What is known of a tool.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<KnownTool>> {
        self.lock().tools.get(&Box::from(name)).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownTool {
    fn new(tool: &Tool) -> Self {
        Self {
            mirrored: MirroredParams::of_schema(&tool.input_schema).map_err(|why| excerpt(&why.to_string()).into()),
            may_be_repeated: tool.annotations.as_ref().is_some_and(says_it_may_be_repeated),
            task: tool.execution.as_ref().and_then(|execution| execution.task_support).unwrap_or_default(),
            output: tool.output_schema.as_ref().map(OutputSchema::new),
        }
    }

    fn bytes(&self) -> usize {
        let mirrored = self.mirrored.as_ref().map_or_else(|why| why.len(), MirroredParams::bytes);
        size_of::<Self>() + mirrored + self.output.as_ref().map_or(0, OutputSchema::bytes)
    }

    /// True if calling it twice does no more than calling it once, by its own word.
    pub(crate) fn says_it_may_be_repeated(&self) -> bool {
        self.may_be_repeated
    }

    /// Whether it runs as a task of 2025-11-25, by its own word.
    pub(crate) fn task_support(&self) -> TaskSupport {
        self.task
    }

    /// Calls `header` with each header that mirrors one of the arguments in this JSON text.
    #[cfg_attr(not(feature = "http-client"), allow(dead_code, reason = "only HTTP has headers"))]
    pub(crate) fn each_header(&self, arguments: &str, header: impl FnMut(&str, Cow<'_, str>)) {
        if let Ok(mirrored) = &self.mirrored {
            mirrored.each_header(arguments, header);
        }
    }
}

impl CalledTool {
    /// Whether an answer is what the tool says that its answers are.
    pub(crate) fn check(&self, answer: &CallToolResult) -> Result<(), Error> {
        self.known.output.as_ref().map_or(Ok(()), |output| output.check(&self.name, answer))
    }
}

fn says_it_may_be_repeated(hints: &ToolAnnotations) -> bool {
    hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, output: &serde_json::Value) -> Tool {
        Tool::new(name).with_output_schema(output.as_object().cloned().unwrap())
    }

    fn known(tools: &[Tool]) -> KnownTools {
        let known = KnownTools::new(true);
        known.note(0, tools);
        known
    }

    #[test]
    fn a_listing_that_is_older_than_a_change_is_not_believed() {
        let known = known(&[Tool::new("a")]);
        let generation = known.generation();
        known.forget();
        assert!(known.get("a").is_none());
        known.note(generation, &[Tool::new("b")]);
        assert!(known.get("b").is_none());
        known.note(known.generation(), &[Tool::new("b")]);
        assert!(known.get("b").is_some());
    }

    #[test]
    fn what_is_listed_again_unchanged_is_not_compiled_again() {
        let known = known(&[tool("a", &json!({"type": "object"}))]);
        let first = known.get("a").unwrap();
        known.note(0, &[tool("a", &json!({"type": "object"}))]);
        assert!(Arc::ptr_eq(&first, &known.get("a").unwrap()));
        known.note(0, &[tool("a", &json!({"type": "array"}))]);
        assert!(!Arc::ptr_eq(&first, &known.get("a").unwrap()));
    }

    #[test]
    fn so_many_tools_are_known_and_no_more() {
        let listed: Vec<_> = (0..=MOST).map(|number| Tool::new(number.to_string())).collect();
        let known = known(&listed);
        assert!(known.get("0").is_none() && known.get(&MOST.to_string()).is_some());
    }

    #[test]
    fn whatever_is_long_of_a_tool_counts() {
        let long = || "x".repeat(BYTES / 3);
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
        for (tools, cache) in [
            ((0..4).map(named).collect::<Vec<_>>(), 1),
            ((0..4).map(mirroring).collect(), 2),
            // Nothing is kept of what a tool is called in annotations.
            ((0..4).map(titled).collect(), 4),
        ] {
            let known = known(&tools);
            assert_eq!(tools.iter().filter(|tool| known.get(&tool.name).is_some()).count(), cache);
        }
    }

    #[cfg(not(feature = "schema-validation"))]
    #[test]
    fn without_the_feature_results_are_taken_as_they_are() {
        let over = Wire { revision: Revision::LATEST, http: false };
        // Also if the schema could not be read.
        let known = known(&[tool("a", &json!({"$schema": "https://example.com/mine"}))]);
        assert!(known.call(over, "a").unwrap().is_none());
    }

    #[test]
    fn hints_say_what_may_be_repeated() {
        let hinted = |annotations| Tool::new("a").with_annotations(annotations);
        for (tool, repeated) in [
            (Tool::new("a"), false),
            (hinted(ToolAnnotations::new().with_read_only_hint(false)), false),
            (hinted(ToolAnnotations::new().with_read_only_hint(true)), true),
            (hinted(ToolAnnotations::new().with_idempotent_hint(true)), true),
        ] {
            assert_eq!(known(&[tool]).get("a").unwrap().says_it_may_be_repeated(), repeated);
        }
    }
}
