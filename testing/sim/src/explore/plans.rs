//! The small worlds that are searched: both sides, both eras, the opening, and the ways to end.

use std::time::Duration;

use serde_json::{Value, json};
use steadfast_model::{Method, ProgressToken, Revision};
use steadfast_proto::connection::Call;

use super::Size;
use super::world::{Faults, Handlers, Input, Plan, PlannedCall};
use crate::endpoint::Endpoint;
use crate::endpoint::opened::{
    cancel, client_of, discover, initialize, initialize_result, limited, limits, modern, modern_client_end, request,
    server_of, unopened_client, unopened_server,
};
use crate::observation::message::Message;

/// The worlds, by name.
pub fn names() -> &'static [&'static str] {
    &[
        "server",
        "duplicates",
        "calls",
        "notifications",
        "endings",
        "opening",
        "modern server",
        "mixed eras",
        "batch",
        "client",
        "client opening",
        "modern client",
    ]
}

/// What is searched under that name.
pub(super) fn plans(name: &str, size: Size) -> Vec<Plan> {
    let plans = plans_of(name, size);
    if size == Size::Tiny { plans.into_iter().map(tiny).collect() } else { plans }
}

/// Less of everything.
fn tiny(mut plan: Plan) -> Plan {
    plan.inputs.truncate(4);
    for input in plan.inputs.iter_mut().skip(1) {
        input.times = input.times.min(1);
    }
    for call in &mut plan.calls {
        call.give_up = 0;
    }
    plan.handlers.logs = 0;
    plan.handlers.progress = plan.handlers.progress.min(1);
    plan.faults = Faults { end_of_input: true, failed_write: plan.faults.failed_write, ..Faults::default() };
    plan
}

fn plans_of(name: &str, size: Size) -> Vec<Plan> {
    match name {
        "server" => vec![server(size)],
        "duplicates" => vec![duplicates(size)],
        "calls" => vec![calls(size)],
        "notifications" if size == Size::Full => vec![notifications(), two_reporters()],
        "notifications" => vec![notifications()],
        "endings" if size == Size::Full => vec![endings(), endings_of_two()],
        "endings" => vec![endings()],
        "opening" => vec![opening(size)],
        "modern server" => vec![modern_server(size)],
        "mixed eras" => vec![mixed(size)],
        "batch" => vec![batch(size)],
        "client" => vec![client(size)],
        "client opening" => vec![client_opening(size)],
        "modern client" => vec![modern_client(size)],
        _ => Vec::new(),
    }
}

/// Two requests whose ids differ only in kind, a call to the client, cancellations, deadlines, and both ends closing.
fn server(size: Size) -> Plan {
    let full = size == Size::Full;
    Plan {
        inputs: vec![
            input("7", &request(json!(7), Some("a")), 1),
            input("\"7\"", &request(json!("7"), None), 1),
            input("cancel 7", &cancel(json!(7)), if full { 2 } else { 1 }),
            input("cancel \"7\"", &cancel(json!("7")), 1),
            input("answer 1", &json!({"jsonrpc":"2.0","id":1,"result":{"roots":[]}}), 1),
        ],
        calls: vec![planned(timed(Call::new(Method::ListRoots, None)), Some(0), u8::from(full))],
        handlers: Handlers { responds: 1, progress: u8::from(full), logs: 0 },
        faults: Faults { end_of_input: true, failed_write: true, ..Faults::default() },
        ..plan("server", server_of(Revision::V2025_11_25, limits()))
    }
}

/// One id used again and again, in flight and after it.
fn duplicates(size: Size) -> Plan {
    let times = 2;
    Plan {
        inputs: vec![
            input("7", &request(json!(7), Some("a")), times),
            input("cancel 7", &cancel(json!(7)), 2),
            input("a broken 7", &json!(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"#), 1),
            input("ping 7", &json!({"jsonrpc":"2.0","id":7,"method":"ping"}), 1),
        ],
        handlers: Handlers { responds: 2, progress: 0, logs: 0 },
        faults: Faults { end_of_input: size == Size::Full, failed_write: size == Size::Full, ..Faults::default() },
        ..plan("duplicates", server_of(Revision::V2025_11_25, limited(|limits| limits.in_flight = 1)))
    }
}

/// A request that makes a call, and a call outside of requests: responses early, late and twice, progress, timeouts.
fn calls(size: Size) -> Plan {
    let full = size == Size::Full;
    let mut first = timed(Call::new(Method::ListRoots, None));
    first.progress_token = Some(ProgressToken::from("t"));
    first.total_timeout = Some(Duration::from_secs(5));
    Plan {
        inputs: vec![
            input("7", &request(json!(7), None), 1),
            input("cancel 7", &cancel(json!(7)), 1),
            input("answer 1", &json!({"jsonrpc":"2.0","id":1,"result":{"roots":[]}}), if full { 2 } else { 1 }),
            input("refusal 2", &json!({"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no"}}), 1),
            input("answer \"1\"", &json!({"jsonrpc":"2.0","id":"1","result":{}}), u8::from(full)),
            input(
                "progress",
                &json!({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}),
                1,
            ),
        ],
        calls: vec![planned(first, Some(0), 1), planned(Call::new(Method::Ping, None), None, if full { 2 } else { 1 })],
        handlers: Handlers { responds: 1, progress: 0, logs: 0 },
        faults: Faults { end_of_input: true, failed_write: full, ..Faults::default() },
        hand: 2,
        ..plan("calls", server_of(Revision::V2025_06_18, limits()))
    }
}

/// Progress and log messages around cancellations, answers, deadlines and messages that cannot be read.
fn notifications() -> Plan {
    Plan {
        inputs: vec![
            input("7", &request(json!(7), Some("a")), 1),
            input("cancel 7", &cancel(json!(7)), 1),
            input("garbage", &json!("{\"jsonrpc\""), 1),
        ],
        handlers: Handlers { responds: 1, progress: 2, logs: 1 },
        faults: Faults { end_of_input: true, ..Faults::default() },
        notice: Some(Method::ToolListChanged),
        ..plan("notifications", server_of(Revision::V2025_11_25, limited(|limits| limits.queued_logs = 1)))
    }
}

/// Progress of two requests at once.
fn two_reporters() -> Plan {
    Plan {
        inputs: vec![
            input("7", &request(json!(7), Some("a")), 1),
            input("8", &request(json!(8), Some("b")), 1),
            input("cancel 7", &cancel(json!(7)), 1),
        ],
        handlers: Handlers { responds: 1, progress: 2, logs: 0 },
        ..plan("notifications", server_of(Revision::V2025_11_25, limits()))
    }
}

/// Every way to end, in every order, with handlers and a call under way.
fn endings() -> Plan {
    Plan {
        inputs: vec![
            input("7", &request(json!(7), None), 1),
            input("cancel 7", &cancel(json!(7)), 1),
            input("ping", &json!({"jsonrpc":"2.0","id":9,"method":"ping"}), 1),
        ],
        calls: vec![planned(Call::new(Method::ListRoots, None), Some(0), 1)],
        handlers: Handlers { responds: 1, progress: 0, logs: 0 },
        faults: Faults {
            end_of_input: true,
            peer_gone: true,
            failed_write: true,
            shut_down: true,
            shut_down_now: true,
        },
        notice: Some(Method::ToolListChanged),
        ..plan("endings", server_of(Revision::V2025_11_25, limits()))
    }
}

/// The ways to end with two handlers and a call under way.
fn endings_of_two() -> Plan {
    Plan {
        inputs: vec![input("7", &request(json!(7), None), 1), input("8", &request(json!(8), None), 1)],
        calls: vec![planned(Call::new(Method::ListRoots, None), Some(0), 0)],
        handlers: Handlers { responds: 1, progress: 0, logs: 0 },
        faults: Faults { end_of_input: true, failed_write: true, shut_down: true, ..Faults::default() },
        ..plan("endings", server_of(Revision::V2025_11_25, limits()))
    }
}

/// The handshake itself, with requests and calls around it.
fn opening(size: Size) -> Plan {
    let full = size == Size::Full;
    Plan {
        inputs: vec![
            input("initialize", &initialize(Revision::V2025_03_26), if full { 2 } else { 1 }),
            input(
                "initialized",
                &json!({"jsonrpc":"2.0","method":"notifications/initialized"}),
                if full { 2 } else { 1 },
            ),
            input("7", &request(json!(7), None), 1),
            input("cancel initialize", &cancel(json!("init")), 1),
            input("ping", &json!({"jsonrpc":"2.0","id":9,"method":"ping"}), u8::from(full)),
        ],
        calls: vec![
            planned(timed(Call::new(Method::ListRoots, None)), None, 1),
            planned(Call::new(Method::Ping, None), None, u8::from(full)),
        ],
        handlers: Handlers { responds: 1, progress: 0, logs: 0 },
        faults: Faults { end_of_input: true, ..Faults::default() },
        ..plan("opening", unopened_server(limits()))
    }
}

/// Requests of 2026-07-28, that need no handshake.
fn modern_server(size: Size) -> Plan {
    let full = size == Size::Full;
    Plan {
        inputs: vec![
            input("7", &modern(json!(7), Some("a")), 1),
            input("\"7\"", &modern(json!("7"), None), 1),
            input("cancel 7", &cancel(json!(7)), if full { 2 } else { 1 }),
            input("discover", &discover(), u8::from(full)),
            input("without metadata", &request(json!(5), None), 1),
        ],
        calls: vec![planned(Call::new(Method::ListRoots, None), Some(0), 0)],
        handlers: Handlers { responds: 1, progress: 1, logs: 0 },
        faults: Faults { end_of_input: true, failed_write: true, ..Faults::default() },
        ..plan("modern server", unopened_server(limits()))
    }
}

/// Both eras on one connection: an older request that calls the client, and one of 2026-07-28.
fn mixed(size: Size) -> Plan {
    let full = size == Size::Full;
    Plan {
        inputs: vec![
            input("7", &request(json!(7), None), 1),
            input("\"7\", modern", &modern(json!("7"), Some("b")), 1),
            input("cancel 7", &cancel(json!(7)), 1),
            input("cancel \"7\"", &cancel(json!("7")), 1),
            input("answer 1", &json!({"jsonrpc":"2.0","id":1,"result":{"roots":[]}}), 1),
        ],
        calls: vec![planned(Call::new(Method::ListRoots, None), Some(0), 1)],
        handlers: Handlers { responds: 1, progress: u8::from(full), logs: 0 },
        faults: Faults { end_of_input: true, shut_down: full, ..Faults::default() },
        ..plan("mixed eras", server_of(Revision::V2025_11_25, limits()))
    }
}

/// A batch of 2025-03-26, with its members cancelled and answered in every order.
fn batch(size: Size) -> Plan {
    let members =
        json!([request(json!(7), Some("a")), request(json!("7"), None), {"jsonrpc":"2.0","id":9,"method":"ping"}, 5]);
    let full = size == Size::Full;
    Plan {
        inputs: vec![
            input("a batch", &members, 1),
            input("8", &request(json!(8), None), u8::from(full)),
            input("cancel 7", &cancel(json!(7)), 1),
            input("cancel \"7\"", &cancel(json!("7")), 1),
            input("a batch that cancels", &json!([cancel(json!(7)), request(json!(7), None)]), u8::from(full)),
        ],
        handlers: Handlers { responds: 1, progress: 1, logs: 0 },
        faults: Faults { end_of_input: true, failed_write: true, ..Faults::default() },
        ..plan("batch", server_of(Revision::V2025_03_26, limits()))
    }
}

/// A client with two calls and a request of the server's.
fn client(size: Size) -> Plan {
    let full = size == Size::Full;
    Plan {
        inputs: vec![
            input("answer 2", &json!({"jsonrpc":"2.0","id":2,"result":{"content":[]}}), 1),
            input("answer 3", &json!({"jsonrpc":"2.0","id":3,"result":{"tools":[]}}), if full { 2 } else { 1 }),
            input("roots/list 2", &json!({"jsonrpc":"2.0","id":2,"method":"roots/list"}), 1),
            input("cancel 2", &cancel(json!(2)), 1),
            input("broken answer 2", &json!(r#"{"jsonrpc":"2.0","id":2,"result":{"#), u8::from(full)),
        ],
        calls: vec![
            planned(timed(Call::new(Method::CallTool, Some(r#"{"name":"t"}"#.into()))), None, 1),
            planned(Call::new(Method::ListTools, None), None, u8::from(full)),
        ],
        handlers: Handlers { responds: 1, progress: 0, logs: 0 },
        faults: Faults { end_of_input: true, failed_write: true, shut_down: full, ..Faults::default() },
        hand: if full { 2 } else { 1 },
        ..plan("client", client_of(Revision::V2025_11_25, limits()))
    }
}

/// A client that opens: the answer comes, comes late, cannot be read, or never comes.
fn client_opening(size: Size) -> Plan {
    let full = size == Size::Full;
    let answer = json!({"jsonrpc":"2.0","id":1,"result":initialize_result(Revision::V2024_11_05)});
    let opening = PlannedCall {
        opens: Some(Revision::V2025_11_25),
        ..planned(timed(Call::new(Method::Initialize, None)), None, 1)
    };
    Plan {
        inputs: vec![
            input("answer 1", &answer, if full { 2 } else { 1 }),
            input(
                "unknown revision",
                &json!({"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"1999-01-01"}}),
                u8::from(full),
            ),
            input("answer 2", &json!({"jsonrpc":"2.0","id":2,"result":{}}), 1),
            input("ping", &json!({"jsonrpc":"2.0","id":1,"method":"ping"}), 1),
            input("roots/list", &json!({"jsonrpc":"2.0","id":"r","method":"roots/list"}), 1),
        ],
        calls: vec![opening, planned(timed(Call::new(Method::Ping, None)), None, 1)],
        handlers: Handlers { responds: 1, progress: 0, logs: 0 },
        faults: Faults { end_of_input: true, failed_write: true, ..Faults::default() },
        ..plan("client opening", unopened_client(limits()))
    }
}

/// A client of 2026-07-28: a subscription that the server may end, and a call that it may not.
fn modern_client(size: Size) -> Plan {
    let full = size == Size::Full;
    Plan {
        inputs: vec![
            input("cancel 1", &cancel(json!(1)), 2),
            input("cancel 2", &cancel(json!(2)), 1),
            input("answer 1", &json!({"jsonrpc":"2.0","id":1,"result":{"content":[]}}), 1),
            input("answer 2", &json!({"jsonrpc":"2.0","id":2,"result":{"content":[]}}), 1),
            input("a request", &json!({"jsonrpc":"2.0","id":2,"method":"roots/list"}), u8::from(full)),
        ],
        calls: vec![
            planned(timed(Call::new(Method::Listen, None)), None, 1),
            planned(timed(Call::new(Method::CallTool, Some(r#"{"name":"t"}"#.into()))), None, u8::from(full)),
        ],
        faults: Faults { end_of_input: true, failed_write: true, shut_down: full, ..Faults::default() },
        ..plan("modern client", modern_client_end(limits()))
    }
}

fn plan(name: &'static str, begin: impl Fn() -> Endpoint + Send + Sync + 'static) -> Plan {
    Plan {
        name,
        begin: Box::new(begin),
        inputs: Vec::new(),
        calls: Vec::new(),
        handlers: Handlers::default(),
        faults: Faults::default(),
        hand: 1,
        notice: None,
    }
}

fn input(label: &'static str, message: &Value, times: u8) -> Input {
    // A string stands for text that is no JSON.
    let text = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
    Input { label, message: Message::read(text.as_bytes()), times }
}

fn planned(call: Call, parent: Option<u64>, give_up: u8) -> PlannedCall {
    PlannedCall { call, parent, give_up, opens: None }
}

fn timed(mut call: Call) -> Call {
    call.timeout = Some(Duration::from_secs(3));
    call
}
