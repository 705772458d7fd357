//! What a server asks a client for, and the answers: roots, sampling and elicitation.

use serde_json::json;
use steadfast_model::{
    Content, CreateMessageParams, CreateMessageResult, ElicitFormParams, ElicitParams, ElicitResult, ElicitUrlParams,
    ElicitationCompleteParams, EmptyParams, FormField, FormOption, FormSchema, IncludeContext, InputRequest,
    InputRequiredResult, InputResponses, ListRootsResult, ModelHint, ModelPreferences, Role, Root, SamplingMessage,
    TaskMetadata, ToolChoice, ToolChoiceMode, ToolResultContent, ToolUseContent,
};

use super::{content, meta, object, tool};

/// The roots.
pub fn list_roots_result() -> ListRootsResult {
    let home = Root::new("file:///home/user").with_name("home").with_meta(meta());
    ListRootsResult::new(vec![home, Root::new("file:///tmp")]).with_meta(meta())
}

/// A conversation: what every revision can say, and what only newer ones can.
pub fn create_message_params(with_tools: bool) -> CreateMessageParams {
    let mut messages = vec![
        SamplingMessage::user("What is the weather?"),
        SamplingMessage::user(Content::image("aGVsbG8=", "image/png")),
        SamplingMessage::assistant(Content::audio("aGVsbG8=", "audio/wav")),
    ];
    if with_tools {
        let call = ToolUseContent::new("call-1", "forecast", object(json!({ "city": "Paris" })));
        let answer = ToolResultContent::new("call-1", content()).with_structured_content(json!({ "celsius": 21.5 }));
        messages
            .push(SamplingMessage::new(Role::Assistant, vec![Content::text("Let me see."), Content::ToolUse(call)]));
        messages.push(SamplingMessage::new(Role::User, vec![Content::ToolResult(answer.with_is_error(false))]));
        messages.push(SamplingMessage::user("and?").with_meta(meta()));
    }
    let preferences = ModelPreferences::default()
        .with_hints(vec![ModelHint::new("small"), ModelHint::default()])
        .with_cost_priority(0.25)
        .with_speed_priority(0.5)
        .with_intelligence_priority(0.75);
    CreateMessageParams::new(messages, 100)
        .with_model_preferences(preferences)
        .with_system_prompt("Be brief.")
        .with_include_context(IncludeContext::ThisServer)
        .with_temperature(0.5)
        .with_stop_sequences(vec!["END".to_owned()])
        .with_metadata(object(json!({ "provider": { "a": 1 } })))
        .with_tools(vec![tool()])
        .with_tool_choice(ToolChoice::new(ToolChoiceMode::Required))
        .with_task(TaskMetadata::default().with_ttl(5_u64))
}

/// A model's answers.
pub fn create_message_results() -> Vec<CreateMessageResult> {
    let call = ToolUseContent::new("call-1", "forecast", object(json!({ "city": "Paris" })));
    vec![
        CreateMessageResult::new("model-1", "Sunny.").with_stop_reason("endTurn").with_meta(meta()),
        CreateMessageResult::new("model-1", Content::image("aGVsbG8=", "image/png")),
        CreateMessageResult::new("model-1", Content::audio("aGVsbG8=", "audio/wav")),
        CreateMessageResult::new("model-1", "").with_content(vec![Content::text("Wait."), Content::ToolUse(call)]),
    ]
}

/// A form with fields that every revision with forms knows.
pub fn form() -> FormSchema {
    FormSchema::new()
        .with_required("name", FormField::string().with_title("Name").with_description("Your name"))
        .with_required("email", FormField::formatted("email"))
        .with_optional("age", FormField::integer())
        .with_optional("height", FormField::number())
        .with_optional("member", FormField::boolean())
}

/// A form in which one thing can be chosen.
pub fn form_of_choice() -> FormSchema {
    form().with_optional("size", plain_choice()).with_optional("colour", titled_choice())
}

/// A form in which several things can be chosen.
pub fn form_of_choices() -> FormSchema {
    form_of_choice().with_optional("sizes", plain_choices()).with_optional("colours", titled_choices())
}

/// One of several options.
pub fn plain_choice() -> FormField {
    FormField::choice(["s", "m"]).with_title("Size").with_description("How large")
}

/// One of several options with titles.
pub fn titled_choice() -> FormField {
    FormField::choice(colours()).with_title("Colour").with_description("How bright")
}

/// Any of several options.
pub fn plain_choices() -> FormField {
    FormField::choices(["s", "m"]).with_title("Sizes").with_description("How large")
}

/// Any of several options with titles.
pub fn titled_choices() -> FormField {
    FormField::choices(colours()).with_title("Colours").with_description("How bright")
}

fn colours() -> [FormOption; 2] {
    [FormOption::new("r").with_title("Red"), FormOption::new("g").with_title("Green")]
}

/// A question by form.
pub fn elicit_form(form: FormSchema) -> ElicitParams {
    let task = TaskMetadata::default().with_ttl(5_u64);
    ElicitParams::Form(ElicitFormParams::new("Who are you?", form).with_task(task))
}

/// A question by URL.
pub fn elicit_url() -> ElicitParams {
    ElicitParams::Url(ElicitUrlParams::new("Please log in", "https://example.org/login").with_elicitation_id("e-1"))
}

/// Answers to questions.
pub fn elicit_results() -> Vec<ElicitResult> {
    let filled_in = json!({ "name": "Ada", "age": 36, "member": true });
    vec![
        ElicitResult::accept(object(filled_in)).with_meta(meta()),
        ElicitResult::agree(),
        ElicitResult::decline(),
        ElicitResult::cancel(),
    ]
}

/// The user has done what a URL asked for.
pub fn elicitation_complete_params() -> ElicitationCompleteParams {
    ElicitationCompleteParams::new("e-1")
}

/// A result that asks for input.
pub fn input_required_result() -> InputRequiredResult {
    InputRequiredResult::new()
        .with_input_request("form", InputRequest::Elicit(elicit_form(form())))
        .with_input_request("url", InputRequest::Elicit(elicit_url()))
        .with_input_request("model", InputRequest::CreateMessage(create_message_params(true)))
        .with_input_request("roots", InputRequest::ListRoots(None))
        .with_input_request("roots-again", InputRequest::ListRoots(Some(EmptyParams::new().with_meta(meta()))))
        .with_request_state("sealed")
        .with_meta(meta())
}

/// Answers to what a result asked for.
pub fn input_responses() -> InputResponses {
    let mut responses = InputResponses::new();
    let written = [
        responses.insert("form", &ElicitResult::accept(object(json!({ "name": "Ada" })))),
        responses.insert("roots", &ListRootsResult::new(vec![Root::new("file:///tmp")])),
        responses.insert("model", &CreateMessageResult::new("model-1", "Sunny.")),
    ];
    assert!(written.iter().all(Result::is_ok));
    responses
}
