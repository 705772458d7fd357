//! Values with everything set that their types have, as no revision alone knows it all.

mod input;

pub use input::*;
use serde_json::{Value, json};
use steadfast_model::{
    Annotations, BlobResourceContents, CacheHints, CacheScope, CallToolParams, CallToolResult, CancelTaskResult,
    CancelledParams, ClientCapabilities, CompleteContext, CompleteParams, CompleteResult, Completion, Content,
    CreateTaskResult, DetailedTask, DiscoverResult, ErrorObject, GetPromptParams, GetPromptResult, Icon, IconTheme,
    Implementation, InitializeParams, InitializeResult, JsonObject, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListTasksResult, ListToolsResult, ListenResult, LoggingLevel, LoggingMessageParams, Meta,
    PaginatedParams, ProgressParams, ProgressToken, Prompt, PromptArgument, PromptMessage, ReadResourceParams,
    ReadResourceResult, Reference, RequestId, Resource, ResourceContents, ResourceTemplate, Revision, Role,
    ServerCapabilities, SetLevelParams, SubscriptionFilter, SubscriptionParams, TASKS_EXTENSION, Task, TaskMetadata,
    TaskStatus, TaskSupport, TasksCapability, TextResourceContents, Tool, ToolAnnotations, ToolExecution,
};

/// A JSON object from a literal.
pub fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(members) => members,
        other => panic!("not an object: {other}"),
    }
}

/// Some `_meta`.
pub fn meta() -> Meta {
    Meta::from(object(json!({ "org.example/colour": "red", "org.example/list": [1, { "a": null }] })))
}

/// The `_meta` of a request.
pub fn request_meta() -> Meta {
    let mut meta = meta();
    meta.set_progress_token(&ProgressToken::from("token"));
    meta
}

/// A piece of software.
pub fn implementation() -> Implementation {
    Implementation::new("weather", "1.2.0")
        .with_title("Weather")
        .with_description("Weather for people who are outside")
        .with_icons(icons())
        .with_website_url("https://example.org/weather")
}

/// Two icons.
pub fn icons() -> Vec<Icon> {
    let sun = Icon::new("https://example.org/sun.png").with_mime_type("image/png");
    let moon = Icon::new("data:image/svg+xml;base64,PHN2Zy8+").with_theme(IconTheme::Dark);
    vec![sun.with_sizes(vec!["48x48".to_owned(), "any".to_owned()]), moon]
}

/// Annotations with everything set.
pub fn annotations() -> Annotations {
    Annotations::new()
        .with_audience(vec![Role::User, Role::Assistant])
        .with_priority(0.75)
        .with_last_modified("2025-01-12T15:00:58Z")
}

/// One piece of every kind that a tool may answer with.
pub fn content() -> Vec<Content> {
    vec![
        Content::text("sunny, 21 °C \"in the shade\"\n").with_annotations(annotations()).with_meta(meta()),
        Content::image("aGVsbG8=", "image/png").with_annotations(annotations()).with_meta(meta()),
        Content::audio("aGVsbG8=", "audio/wav").with_annotations(annotations()).with_meta(meta()),
        Content::resource_link(resource()),
        Content::resource(text_contents()).with_annotations(annotations()).with_meta(meta()),
        Content::resource(blob_contents()),
        Content::text(""),
    ]
}

/// The contents of a text resource.
pub fn text_contents() -> TextResourceContents {
    TextResourceContents::new("weather://paris/now", "rain").with_mime_type("text/plain").with_meta(meta())
}

/// The contents of a binary resource.
pub fn blob_contents() -> BlobResourceContents {
    BlobResourceContents::new("weather://paris/map", "aGVsbG8=").with_mime_type("image/png").with_meta(meta())
}

/// A resource.
pub fn resource() -> Resource {
    Resource::new("weather://paris/now", "paris-now")
        .with_title("Paris now")
        .with_description("The weather in Paris")
        .with_mime_type("text/plain")
        .with_size(1024_u64)
        .with_annotations(annotations())
        .with_icons(icons())
        .with_meta(meta())
}

/// A resource template.
pub fn resource_template() -> ResourceTemplate {
    ResourceTemplate::new("weather://{city}/now", "now")
        .with_title("The weather now")
        .with_description("The weather in any city")
        .with_mime_type("text/plain")
        .with_annotations(annotations())
        .with_icons(icons())
        .with_meta(meta())
}

/// A tool.
pub fn tool() -> Tool {
    Tool::new("forecast")
        .with_title("Forecast")
        .with_description("The weather of the next days")
        .with_input_schema(object(json!({
            "type": "object",
            "properties": { "city": { "type": "string", "x-hint": [1] }, "days": { "type": "integer", "default": 3 } },
            "required": ["city"],
        })))
        .with_output_schema(object(json!({
            "type": "object",
            "properties": { "celsius": { "type": "number" } },
            "required": ["celsius"],
        })))
        .with_annotations(tool_annotations())
        .with_icons(icons())
        .with_execution(ToolExecution::new(TaskSupport::Optional))
        .with_meta(meta())
}

/// A tool whose schemas use all that JSON Schema has: boolean schemas, definitions, composition.
pub fn tool_of_many_schemas() -> Tool {
    Tool::new("anything")
        .with_title("Anything")
        .with_input_schema(object(json!({
            "type": "object",
            "properties": { "any": true, "none": false, "node": { "$ref": "#/$defs/node" } },
            "additionalProperties": false,
            "$defs": { "node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/node" } } } },
        })))
        .with_output_schema(object(json!({ "type": "array", "items": { "type": "string" } })))
}

/// Hints about a tool.
pub fn tool_annotations() -> ToolAnnotations {
    ToolAnnotations::new()
        .with_title("Forecast, annotated")
        .with_read_only_hint(true)
        .with_destructive_hint(false)
        .with_idempotent_hint(true)
        .with_open_world_hint(true)
}

/// A call. The other crate keeps the `_meta` of requests for newer revisions only.
pub fn call_tool_params() -> CallToolParams {
    let call = CallToolParams::new("forecast");
    let call = if crate::REVISION >= Revision::V2025_11_25 { call.with_meta(request_meta()) } else { call };
    call.with_arguments(object(json!({ "city": "Paris", "nested": { "list": [1, 2.5, null, true] } })))
        .with_task(TaskMetadata::default().with_ttl(60_000_u64))
        .with_input_responses(input_responses())
        .with_request_state("sealed")
}

/// A call's result with an object as structured content.
pub fn call_tool_result() -> CallToolResult {
    CallToolResult::new(content())
        .with_structured_content(json!({ "celsius": 21.5, "days": [{ "rain": false }] }))
        .with_is_error(false)
        .with_meta(meta())
}

/// Results with structured content that is no object.
pub fn unusual_call_tool_results() -> Vec<CallToolResult> {
    let values = [json!([1, 2, 3]), json!("text"), json!(7), json!(true)];
    values.into_iter().map(|value| CallToolResult::text("plain").with_structured_content(value)).collect()
}

/// A page of tools.
pub fn list_tools_result() -> ListToolsResult {
    ListToolsResult::new(vec![tool(), Tool::new("bare")])
        .with_next_cursor("page-2")
        .with_cache(CacheHints::new(60_000, CacheScope::Public))
        .with_meta(meta())
}

/// A page's parameters.
pub fn paginated_params() -> PaginatedParams {
    PaginatedParams::new().with_cursor("page-2")
}

/// A prompt.
pub fn prompt() -> Prompt {
    let city = PromptArgument::new("city").with_title("City").with_description("Where").with_required(true);
    Prompt::new("brief")
        .with_title("Brief")
        .with_description("What to wear")
        .with_arguments(vec![city, PromptArgument::new("style")])
        .with_icons(icons())
        .with_meta(meta())
}

/// A page of prompts.
pub fn list_prompts_result() -> ListPromptsResult {
    ListPromptsResult::new(vec![prompt(), Prompt::new("bare")]).with_next_cursor("page-2").with_meta(meta())
}

/// The parameters of a prompt.
pub fn get_prompt_params() -> GetPromptParams {
    GetPromptParams::new("brief")
        .with_argument("city", "Paris")
        .with_input_responses(input_responses())
        .with_request_state("sealed")
}

/// A filled-in prompt.
pub fn get_prompt_result() -> GetPromptResult {
    let mut messages: Vec<_> = content().into_iter().map(PromptMessage::user).collect();
    messages.push(PromptMessage::assistant("Take an umbrella."));
    GetPromptResult::new(messages).with_description("What to wear").with_meta(meta())
}

/// A page of resources.
pub fn list_resources_result() -> ListResourcesResult {
    ListResourcesResult::new(vec![resource(), Resource::new("a:b", "bare")]).with_next_cursor("2").with_meta(meta())
}

/// A page of resource templates.
pub fn list_resource_templates_result() -> ListResourceTemplatesResult {
    let templates = vec![resource_template(), ResourceTemplate::new("a:{b}", "bare")];
    ListResourceTemplatesResult::new(templates).with_next_cursor("2").with_meta(meta())
}

/// The parameters of reading a resource.
pub fn read_resource_params() -> ReadResourceParams {
    ReadResourceParams::new("weather://paris/now").with_input_responses(input_responses()).with_request_state("sealed")
}

/// What a resource holds.
pub fn read_resource_result() -> ReadResourceResult {
    let contents: Vec<ResourceContents> = vec![text_contents().into(), blob_contents().into()];
    ReadResourceResult::new(contents).with_cache(CacheHints::new(5, CacheScope::Private)).with_meta(meta())
}

/// Completing a prompt's argument, and a resource's.
pub fn complete_params() -> [CompleteParams; 2] {
    let context = CompleteContext::new([("country".to_owned(), "France".to_owned())].into());
    [
        CompleteParams::new(Reference::prompt("brief"), "city", "Par").with_context(context),
        CompleteParams::new(Reference::resource("weather://{city}/now"), "city", ""),
    ]
}

/// Completions.
pub fn complete_result() -> CompleteResult {
    let values = vec!["Paris".to_owned(), "Parma".to_owned()];
    CompleteResult::new(Completion::new(values).with_total(12_u64).with_has_more(true)).with_meta(meta())
}

/// A client that can do everything.
pub fn client_capabilities() -> ClientCapabilities {
    ClientCapabilities::new()
        .with_roots(true)
        .with_sampling_tools()
        .with_elicitation_form()
        .with_elicitation_url()
        .with_experimental(object(json!({ "org.example/x": { "a": 1 } })))
        .with_tasks(
            TasksCapability::default()
                .with_list(JsonObject::new())
                .with_cancel(JsonObject::new())
                .with_requests(object(json!({ "sampling": { "createMessage": {} }, "elicitation": { "create": {} } }))),
        )
        .with_extension(TASKS_EXTENSION, JsonObject::new())
}

/// A server that offers everything.
pub fn server_capabilities() -> ServerCapabilities {
    ServerCapabilities::new()
        .with_tools(true)
        .with_prompts(true)
        .with_resources(true, true)
        .with_logging()
        .with_completions()
        .with_experimental(object(json!({ "org.example/x": {} })))
        .with_tasks(
            TasksCapability::default()
                .with_list(JsonObject::new())
                .with_cancel(JsonObject::new())
                .with_requests(object(json!({ "tools": { "call": {} } }))),
        )
        .with_extension(TASKS_EXTENSION, JsonObject::new())
}

/// The handshake's request.
pub fn initialize_params() -> InitializeParams {
    InitializeParams::new(crate::REVISION.as_str(), client_capabilities(), implementation())
}

/// The handshake's answer.
pub fn initialize_result() -> InitializeResult {
    InitializeResult::new(crate::REVISION.as_str(), server_capabilities(), implementation())
        .with_instructions("Ask for a city.")
        .with_meta(meta())
}

/// What a server is.
pub fn discover_result() -> DiscoverResult {
    DiscoverResult::new(&[Revision::LATEST], server_capabilities())
        .with_instructions("Ask for a city.")
        .with_cache(CacheHints::new(1000, CacheScope::Public))
        .with_meta(meta())
}

/// Progress.
pub fn progress_params() -> [ProgressParams; 2] {
    [ProgressParams::new("token", 0.5).with_total(2.5).with_message("half of it"), ProgressParams::new(7, 3.0)]
}

/// A cancellation.
pub fn cancelled_params() -> [CancelledParams; 2] {
    [CancelledParams::new("seven").with_reason("the user left"), CancelledParams::new(7)]
}

/// A log message.
pub fn logging_message_params() -> [LoggingMessageParams; 2] {
    [
        LoggingMessageParams::new(LoggingLevel::Warning, json!({ "station": "lost" })).with_logger("station"),
        LoggingMessageParams::new(LoggingLevel::Emergency, "text"),
    ]
}

/// Every level of severity.
pub fn set_level_params() -> Vec<SetLevelParams> {
    LoggingLevel::ALL.iter().copied().map(SetLevelParams::new).collect()
}

/// One error of each kind.
pub fn errors() -> Vec<ErrorObject> {
    vec![
        ErrorObject::parse_error("not JSON"),
        ErrorObject::invalid_request("no method"),
        ErrorObject::method_not_found("tools/destroy"),
        ErrorObject::invalid_params("no such tool").with_data(json!({ "tool": "x" })),
        ErrorObject::internal("failed"),
        ErrorObject::resource_not_found("weather://paris/then"),
        ErrorObject::new(1, "an error of our own"),
    ]
}

/// A task of that status.
pub fn task(status: TaskStatus) -> Task {
    Task::new("task-1", status, "2025-11-25T10:30:00Z")
        .with_status_message("on its way")
        .with_last_updated_at("2025-11-25T10:40:00Z")
        .with_ttl_ms(60_000_u64)
        .with_poll_interval_ms(500_u64)
}

/// Every status.
pub const TASK_STATUSES: [TaskStatus; 5] =
    [TaskStatus::Working, TaskStatus::InputRequired, TaskStatus::Completed, TaskStatus::Failed, TaskStatus::Cancelled];

/// A request that goes on as a task.
pub fn create_task_result() -> CreateTaskResult {
    CreateTaskResult::new(task(TaskStatus::Working)).with_meta(meta())
}

/// Tasks of every status.
pub fn detailed_tasks() -> Vec<DetailedTask> {
    TASK_STATUSES.into_iter().map(|status| DetailedTask::new(task(status)).with_meta(meta())).collect()
}

/// A task that was cancelled.
pub fn cancel_task_result() -> CancelTaskResult {
    CancelTaskResult::new(task(TaskStatus::Cancelled)).with_meta(meta())
}

/// A page of tasks.
pub fn list_tasks_result() -> ListTasksResult {
    let tasks = TASK_STATUSES.into_iter().map(task).collect();
    ListTasksResult::new(tasks).with_next_cursor("page-2").with_meta(meta())
}

/// What a client subscribes to.
pub fn subscription_params() -> SubscriptionParams {
    SubscriptionParams::new(
        SubscriptionFilter::new()
            .with_tools_list_changed(true)
            .with_prompts_list_changed(false)
            .with_resources_list_changed(true)
            .with_resource_subscriptions(vec!["weather://paris/now".to_owned()]),
    )
}

/// The end of a stream.
pub fn listen_result() -> ListenResult {
    ListenResult::new(&RequestId::from("listen-1"))
}
