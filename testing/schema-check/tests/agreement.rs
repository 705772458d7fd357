//! One test for each kind of message, against the types of the revision that this build is for.
#![cfg(any(
    feature = "r2024_11_05",
    feature = "r2025_03_26",
    feature = "r2025_06_18",
    feature = "r2025_11_25",
    feature = "r2026_07_28"
))]

#[cfg(feature = "r2024_11_05")]
use rust_mcp_schema::mcp_2024_11_05 as theirs;
#[cfg(feature = "r2025_03_26")]
use rust_mcp_schema::mcp_2025_03_26 as theirs;
#[cfg(feature = "r2025_06_18")]
use rust_mcp_schema::mcp_2025_06_18 as theirs;
#[cfg(feature = "r2025_11_25")]
use rust_mcp_schema::mcp_2025_11_25 as theirs;
#[cfg(feature = "r2026_07_28")]
use rust_mcp_schema::mcp_2026_07_28 as theirs;

use schema_check::{accepted, notice, params, result, samples, value};

#[test]
fn tools() {
    value::<theirs::Tool, _>(&samples::tool());
    accepted::<theirs::Tool, _>(&samples::tool_of_many_schemas());
    result::<theirs::ListToolsResult, _>(&samples::list_tools_result());
}

#[test]
fn calls() {
    params::<theirs::CallToolRequestParams, _>(&samples::call_tool_params());
    result::<theirs::CallToolResult, _>(&samples::call_tool_result());
    for unusual in samples::unusual_call_tool_results() {
        result::<theirs::CallToolResult, _>(&unusual);
    }
}

#[test]
fn prompts() {
    value::<theirs::Prompt, _>(&samples::prompt());
    result::<theirs::ListPromptsResult, _>(&samples::list_prompts_result());
    params::<theirs::GetPromptRequestParams, _>(&samples::get_prompt_params());
    result::<theirs::GetPromptResult, _>(&samples::get_prompt_result());
}

#[test]
fn resources() {
    value::<theirs::Resource, _>(&samples::resource());
    value::<theirs::ResourceTemplate, _>(&samples::resource_template());
    result::<theirs::ListResourcesResult, _>(&samples::list_resources_result());
    result::<theirs::ListResourceTemplatesResult, _>(&samples::list_resource_templates_result());
    params::<theirs::ReadResourceRequestParams, _>(&samples::read_resource_params());
    result::<theirs::ReadResourceResult, _>(&samples::read_resource_result());
    let changed = steadfast_model::ResourceUriParams::new("weather://paris/now");
    notice::<theirs::ResourceUpdatedNotificationParams, _>(&changed);
}

#[test]
fn completions() {
    for question in samples::complete_params() {
        params::<theirs::CompleteRequestParams, _>(&question);
    }
    result::<theirs::CompleteResult, _>(&samples::complete_result());
}

#[test]
fn names_and_capabilities() {
    value::<theirs::Implementation, _>(&samples::implementation());
    value::<theirs::ClientCapabilities, _>(&samples::client_capabilities());
    value::<theirs::ServerCapabilities, _>(&samples::server_capabilities());
}

#[test]
fn signals() {
    for progress in samples::progress_params() {
        notice::<theirs::ProgressNotificationParams, _>(&progress);
    }
    for cancelled in samples::cancelled_params() {
        notice::<theirs::CancelledNotificationParams, _>(&cancelled);
    }
    for message in samples::logging_message_params() {
        notice::<theirs::LoggingMessageNotificationParams, _>(&message);
    }
}

#[test]
fn errors() {
    for error in samples::errors() {
        schema_check::error::<theirs::RpcError>(&error);
    }
}

#[test]
fn roots() {
    value::<theirs::ListRootsResult, _>(&samples::list_roots_result());
}

#[test]
fn sampling() {
    let with_tools = schema_check::REVISION >= steadfast_model::Revision::V2025_11_25;
    value::<theirs::CreateMessageRequestParams, _>(&samples::create_message_params(with_tools));
    accepted::<theirs::CreateMessageRequestParams, _>(&samples::create_message_params(true));
    for answer in samples::create_message_results() {
        value::<theirs::CreateMessageResult, _>(&answer);
    }
}

#[cfg(not(feature = "r2026_07_28"))]
mod handshake {
    use super::{params, result, samples, theirs};

    #[test]
    fn initialize() {
        params::<theirs::InitializeRequestParams, _>(&samples::initialize_params());
        result::<theirs::InitializeResult, _>(&samples::initialize_result());
    }

    #[test]
    fn levels_and_subscriptions() {
        for level in samples::set_level_params() {
            params::<theirs::SetLevelRequestParams, _>(&level);
        }
        let resource = steadfast_model::ResourceUriParams::new("weather://paris/now");
        params::<theirs::SubscribeRequestParams, _>(&resource);
        params::<theirs::UnsubscribeRequestParams, _>(&resource);
    }
}

#[cfg(any(feature = "r2024_11_05", feature = "r2025_03_26", feature = "r2025_06_18"))]
#[test]
fn pages() {
    params::<theirs::ListToolsRequestParams, _>(&samples::paginated_params());
    params::<theirs::ListPromptsRequestParams, _>(&samples::paginated_params());
    params::<theirs::ListResourcesRequestParams, _>(&samples::paginated_params());
    params::<theirs::ListResourceTemplatesRequestParams, _>(&samples::paginated_params());
}

#[cfg(any(feature = "r2025_11_25", feature = "r2026_07_28"))]
#[test]
fn pages() {
    params::<theirs::PaginatedRequestParams, _>(&samples::paginated_params());
}

#[cfg(feature = "r2025_06_18")]
#[test]
fn elicitation() {
    value::<theirs::ElicitRequestParams, _>(&samples::elicit_form(samples::form()));
    accepted::<theirs::ElicitRequestParams, _>(&samples::elicit_form(samples::form_of_choice()));
    schema_check::field::<theirs::EnumSchema>(&samples::plain_choice());
    schema_check::refused(&samples::elicit_form(samples::form_of_choices()));
    schema_check::refused(&samples::elicit_url());
    for answer in samples::elicit_results() {
        result::<theirs::ElicitResult, _>(&answer);
    }
}

#[cfg(any(feature = "r2025_11_25", feature = "r2026_07_28"))]
#[test]
fn elicitation() {
    value::<theirs::ElicitRequestParams, _>(&samples::elicit_form(samples::form()));
    accepted::<theirs::ElicitRequestFormParams, _>(&samples::elicit_form(samples::form_of_choices()));
    schema_check::field::<theirs::UntitledSingleSelectEnumSchema>(&samples::plain_choice());
    schema_check::field::<theirs::TitledSingleSelectEnumSchema>(&samples::titled_choice());
    schema_check::field::<theirs::UntitledMultiSelectEnumSchema>(&samples::plain_choices());
    schema_check::field::<theirs::TitledMultiSelectEnumSchema>(&samples::titled_choices());
    value::<theirs::ElicitRequestUrlParams, _>(&samples::elicit_url());
    for answer in samples::elicit_results() {
        value::<theirs::ElicitResult, _>(&answer);
    }
}

#[cfg(feature = "r2025_11_25")]
#[test]
fn tasks() {
    result::<theirs::CreateTaskResult, _>(&samples::create_task_result());
    result::<theirs::CancelTaskResult, _>(&samples::cancel_task_result());
    result::<theirs::ListTasksResult, _>(&samples::list_tasks_result());
    params::<theirs::GetTaskParams, _>(&steadfast_model::TaskParams::new("task-1"));
    for task in samples::detailed_tasks() {
        result::<theirs::GetTaskResult, _>(&task);
        notice::<theirs::TaskStatusNotificationParams, _>(&task);
    }
    let steadfast_model::ElicitParams::Url(url) = samples::elicit_url() else { panic!("by URL") };
    let error = steadfast_model::ErrorObject::url_elicitation_required("log in first", vec![url]);
    schema_check::error::<theirs::UrlElicitError>(&error);
    notice::<theirs::ElicitCompleteParams, _>(&samples::elicitation_complete_params());
}

#[cfg(feature = "r2026_07_28")]
mod modern {
    use super::{notice, params, result, samples, theirs};
    use steadfast_model::{ClientCapabilities, ErrorObject, Revision};

    #[test]
    fn discovery() {
        params::<theirs::RequestParams, _>(&steadfast_model::EmptyParams::new());
        result::<theirs::DiscoverResult, _>(&samples::discover_result());
    }

    #[test]
    fn errors() {
        let missing = ErrorObject::missing_capability("needs roots", &ClientCapabilities::new().with_roots(false));
        schema_check::error::<theirs::MissingRequiredClientCapabilityErrorError>(&missing);
        let unsupported = ErrorObject::unsupported_version("1.0.0", &[Revision::LATEST]);
        schema_check::error::<theirs::UnsupportedProtocolVersionErrorError>(&unsupported);
    }

    #[test]
    fn input_requests() {
        result::<theirs::InputRequiredResult, _>(&samples::input_required_result());
    }

    #[test]
    fn subscriptions() {
        params::<theirs::SubscriptionsListenRequestParams, _>(&samples::subscription_params());
        notice::<theirs::SubscriptionsAcknowledgedNotificationParams, _>(&samples::subscription_params());
        result::<theirs::SubscriptionsListenResult, _>(&samples::listen_result());
    }
}
