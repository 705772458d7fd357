//! The auto traits of public types, which are part of the API: programs hold them in statics, tasks and structs of their own.

use steadfast::client::{CallHandle, Canceller, ChangeStream, ConnectBuilder, ItemStream, LogStream, ProgressStream};
use steadfast::model::request::{CallTool, ListTools};
use steadfast::server::{Ask, ServeBuilder};
use steadfast::transport::http::{HttpServerOptions, HttpService, HttpTarget, ServeHttpBuilder};
use steadfast::{
    Client, Context, Error, Server, ServerBuilder, ServerPrompt, ServerResource, ServerResourceTemplate, ServerTool,
    ToolError,
};

fn is_send_and_sync<T: Send + Sync>() {}
fn is_send<T: Send>() {}
fn is_send_and_unpin<T: Send + Unpin>() {}

/// What this tests is that it compiles.
#[test]
fn public_types_can_be_shared_and_sent() {
    is_send_and_sync::<Client>();
    is_send_and_sync::<Server>();
    is_send_and_sync::<Context>();
    is_send_and_sync::<Error>();
    is_send_and_sync::<ToolError>();
    is_send_and_sync::<ServerTool>();
    is_send_and_sync::<ServerPrompt>();
    is_send_and_sync::<ServerResource>();
    is_send_and_sync::<ServerResourceTemplate>();
    is_send_and_sync::<ServerBuilder>();
    is_send_and_sync::<HttpService>();
    is_send_and_sync::<HttpServerOptions>();
    is_send_and_sync::<HttpTarget>();
    is_send_and_sync::<Canceller>();
    is_send::<ConnectBuilder>();
    is_send::<ServeBuilder>();
    is_send::<ServeHttpBuilder>();
    is_send::<Ask<bool>>();
    is_send_and_unpin::<ItemStream<ListTools>>();
    is_send_and_unpin::<ChangeStream>();
    is_send_and_unpin::<LogStream>();
    is_send_and_unpin::<ProgressStream>();
    is_send_and_unpin::<CallHandle<CallTool>>();
}
