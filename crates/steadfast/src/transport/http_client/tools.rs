//! The tools that the server has listed: which of their arguments are mirrored into headers.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;
use steadfast_model::JsonObject;
use steadfast_proto::envelope::{self, AnswerBody, Message};
use steadfast_proto::http::params::MirroredParams;

/// What is known of tools, by name. Most have nothing that is mirrored, and are not here.
#[derive(Default)]
pub(super) struct Tools(Mutex<BTreeMap<String, MirroredParams>>);

#[derive(Deserialize)]
struct Listed {
    #[serde(default)]
    tools: Vec<Tool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    name: String,
    #[serde(default)]
    input_schema: JsonObject,
}

impl Tools {
    /// Takes note of an answer to `tools/list`.
    pub(super) fn note(&self, answer: &[u8]) {
        let Ok(Message::Answer { body: AnswerBody::Result(result), .. }) = envelope::read(answer, usize::MAX) else {
            return;
        };
        // Whoever asked is told if it cannot be read.
        let Ok(listed) = serde_json::from_str::<Listed>(result) else { return };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for tool in listed.tools {
            match MirroredParams::of_schema(&tool.input_schema) {
                Ok(mirrored) if !mirrored.is_empty() => drop(known.insert(tool.name, mirrored)),
                _ => drop(known.remove(&tool.name)),
            }
        }
    }

    /// Calls `header` with each header of a call of that tool with these arguments.
    pub(super) fn each_header(&self, tool: &str, arguments: &JsonObject, header: impl FnMut(&str, Cow<'_, str>)) {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mirrored) = known.get(tool) {
            mirrored.each_header(arguments, header);
        }
    }
}
