//! Requests to the client, encoded for one revision: roots, sampling, elicitation, input requests.

use std::slice;

use serde::Serialize;
use serde::ser::{Error as _, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Value, json};

use super::object::NestedObjectEncoder;
use super::{Encode, ObjectEncoder, RequestResult};
use crate::feature::content::{Content, Role};
use crate::feature::elicit::{ElicitParams, ElicitResult, ElicitationCompleteParams};
use crate::feature::form::FormSchema;
use crate::feature::roots::{ListRootsResult, Root};
use crate::feature::sampling::{CreateMessageParams, CreateMessageResult, SamplingMessage};
use crate::feature::task::TaskMetadata;
use crate::message::input::{InputRequest, InputRequests, InputRequiredResult};
use crate::message::meta::Meta;
use crate::revision::Revision;

impl Encode for Root {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("uri", &self.uri)?;
        object.some("name", self.name.as_ref())?;
        object.meta(self.meta.as_ref())?;
        object.extra(&self.extra)
    }
}

impl Encode for ListRootsResult {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.inner_list("roots", &self.roots)?;
        handshake_meta(self.meta.as_ref(), object)
    }
}

impl RequestResult for ListRootsResult {}

/// Writes the `_meta` of a request to the client, but not since 2026-07-28: there the request is part of a result and has no
/// `_meta`.
fn handshake_meta<M: SerializeMap>(meta: Option<&Meta>, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
    if object.revision().is_stateless() { Ok(()) } else { object.meta(meta) }
}

fn task<M: SerializeMap>(task: Option<&TaskMetadata>, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
    if object.revision().has_experimental_tasks() { object.some("task", task) } else { Ok(()) }
}

impl Encode for CreateMessageParams {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("messages", &SamplingMessagesEncoder { messages: &self.messages, revision: object.revision() })?;
        object.some("modelPreferences", self.model_preferences.as_ref())?;
        object.some("systemPrompt", self.system_prompt.as_ref())?;
        object.some("includeContext", self.include_context.as_ref())?;
        object.some("temperature", self.temperature.as_ref())?;
        object.put("maxTokens", &self.max_tokens)?;
        object.list_since(Revision::V2024_11_05, "stopSequences", &self.stop_sequences)?;
        object.some("metadata", self.metadata.as_ref())?;
        if object.is_since(Revision::V2025_11_25) {
            if !self.tools.is_empty() {
                object.inner_list("tools", &self.tools)?;
            }
            object.some("toolChoice", self.tool_choice.as_ref())?;
        }
        task(self.task.as_ref(), object)?;
        handshake_meta(self.meta.as_ref(), object)
    }
}

/// Encodes sampling messages. Before 2025-11-25 a sampling message has one piece of content: several pieces become several
/// messages.
struct SamplingMessagesEncoder<'a> {
    messages: &'a [SamplingMessage],
    revision: Revision,
}

impl Serialize for SamplingMessagesEncoder<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(None)?;
        for message in self.messages {
            if self.revision >= Revision::V2025_11_25 {
                sequence.serialize_element(&NestedObjectEncoder { value: message, revision: self.revision })?;
            } else {
                for piece in &message.content {
                    let single = SingleContentMessage { role: message.role, content: piece };
                    sequence.serialize_element(&NestedObjectEncoder { value: &single, revision: self.revision })?;
                }
            }
        }
        sequence.end()
    }
}

struct SingleContentMessage<'a> {
    role: Role,
    content: &'a Content,
}

impl Encode for SingleContentMessage<'_> {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("role", &self.role)?;
        object.inner("content", self.content)
    }
}

impl Encode for SamplingMessage {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("role", &self.role)?;
        pieces(&self.content, object)?;
        object.meta(self.meta.as_ref())?;
        object.extra(&self.extra)
    }
}

/// Encodes one piece of content as an object, and several as an array.
fn pieces<M: SerializeMap>(content: &[Content], object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
    match content {
        [piece] => object.inner("content", piece),
        pieces => object.inner_list("content", pieces),
    }
}

impl Encode for CreateMessageResult {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("role", &self.role)?;
        if object.is_since(Revision::V2025_11_25) {
            pieces(&self.content, object)?;
        } else {
            pieces(slice::from_ref(&joined(&self.content)), object)?;
        }
        object.put("model", &self.model)?;
        object.some("stopReason", self.stop_reason.as_ref())?;
        object.meta(self.meta.as_ref())
    }
}

impl RequestResult for CreateMessageResult {}

/// Joins content for revisions that allow only one piece: all texts joined, or the first piece if there is no text.
fn joined(content: &[Content]) -> Content {
    match content {
        [piece] => piece.clone(),
        pieces => {
            let texts: Vec<_> = pieces.iter().filter_map(Content::as_text).collect();
            let first = pieces.iter().find(|_| texts.is_empty());
            first.cloned().unwrap_or_else(|| Content::text(texts.join("\n")))
        }
    }
}

impl Encode for ElicitParams {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        let revision = object.revision();
        match self {
            Self::Form(params) => {
                object.since(Revision::V2025_11_25, "mode", Some(&"form"))?;
                object.put("message", &params.message)?;
                if object.is_since(Revision::V2025_11_25) {
                    object.put("requestedSchema", &params.requested_schema)?;
                } else {
                    let form = first_form(&params.requested_schema).map_err(M::Error::custom)?;
                    object.put("requestedSchema", &form)?;
                }
                task(params.task.as_ref(), object)?;
                handshake_meta(params.meta.as_ref(), object)
            }
            Self::Url(params) => {
                if revision < Revision::V2025_11_25 {
                    return Err(M::Error::custom(format_args!("revision {revision} has no elicitation by URL")));
                }
                object.put("mode", "url")?;
                object.put("message", &params.message)?;
                object.put("url", &params.url)?;
                if !revision.is_stateless() {
                    let id = params.elicitation_id.as_ref();
                    let id = id.ok_or_else(|| M::Error::custom("a URL elicitation of 2025-11-25 needs an id"))?;
                    object.put("elicitationId", id)?;
                }
                task(params.task.as_ref(), object)?;
                handshake_meta(params.meta.as_ref(), object)
            }
        }
    }
}

/// Converts a form for revision 2025-06-18: titles of choices are in `enumNames`, only booleans have defaults, and there is no
/// choice of several options.
fn first_form(form: &FormSchema) -> Result<FormSchema, String> {
    let mut form = form.clone();
    let schema = form.as_object_mut();
    schema.shift_remove("$schema");
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (name, field) in properties.into_iter().flatten() {
        let Value::Object(field) = field else { continue };
        match field.get("type").and_then(Value::as_str) {
            Some("array") => {
                return Err(format!("form field {name}: revision 2025-06-18 has no choice of several options"));
            }
            Some("boolean") => {}
            _ => drop(field.shift_remove("default")),
        }
        if let Some(Value::Array(options)) = field.shift_remove("oneOf") {
            let values: Vec<_> = options.iter().filter_map(|option| option.get("const")).cloned().collect();
            let titles = options.iter().map(|option| option.get("title").or_else(|| option.get("const")));
            let titles: Vec<_> = titles.map(|title| title.cloned().unwrap_or(Value::Null)).collect();
            field.insert("enum".to_owned(), json!(values));
            field.insert("enumNames".to_owned(), json!(titles));
        }
    }
    Ok(form)
}

impl Encode for ElicitResult {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("action", &self.action)?;
        object.some("content", self.content.as_ref())?;
        handshake_meta(self.meta.as_ref(), object)
    }
}

impl RequestResult for ElicitResult {}

impl Encode for ElicitationCompleteParams {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("elicitationId", &self.elicitation_id)?;
        object.meta(self.meta.as_ref())
    }
}

impl Encode for InputRequest {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.put("method", self.method().name())?;
        match self {
            Self::Elicit(params) => object.inner("params", params),
            Self::CreateMessage(params) => object.inner("params", params),
            Self::ListRoots(params) => object.inner_some("params", params.as_ref()),
        }
    }
}

impl Encode for InputRequests {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        for (key, request) in self {
            object.inner(key, request)?;
        }
        Ok(())
    }
}

impl Encode for InputRequiredResult {
    fn encode<M: SerializeMap>(&self, object: &mut ObjectEncoder<'_, M>) -> Result<(), M::Error> {
        object.inner_some("inputRequests", self.input_requests.as_ref())?;
        object.some("requestState", self.request_state.as_ref())?;
        object.meta(self.meta.as_ref())
    }
}

impl RequestResult for InputRequiredResult {
    const RESULT_TYPE: &'static str = "input_required";
}
