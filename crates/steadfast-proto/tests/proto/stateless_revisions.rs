//! Every stateless revision is negotiated, and its requests and headers are checked: also a revision that was added.
//!
//! These tests know no revision by its date. With `--cfg future_revision` there are two stateless revisions.

use serde_json::{Value, json};
use steadfast_model::wire::{PerMessageMembers, params_text};
use steadfast_model::{
    ClientCapabilities, EmptyParams, Implementation, Method, Revision, ServerCapabilities, code, meta,
};
use steadfast_proto::Moment;
use steadfast_proto::connection::{
    Call, CallKey, ClientDescription, ClientOrServerDescription, Connection, ConnectionEvent, Limits, PeerInfo,
    ServerDescription,
};
use steadfast_proto::envelope::{self, Message};
use steadfast_proto::http::headers::{self, HttpSessionMode};
use steadfast_proto::http::name;

fn server() -> Connection {
    let capabilities = ServerCapabilities::new().with_tools(true);
    Connection::new(
        ClientOrServerDescription::Server(ServerDescription::new(Implementation::new("server", "1"), capabilities)),
        Limits::default(),
    )
}

fn client() -> (Connection, PerMessageMembers) {
    let (info, capabilities) = (Implementation::new("client", "1"), ClientCapabilities::new());
    let common_members = PerMessageMembers::of_client(&info, &capabilities);
    (
        Connection::new(
            ClientOrServerDescription::Client(ClientDescription::new(info, capabilities)),
            Limits::default(),
        ),
        common_members,
    )
}

fn request(method: Method, version: &str) -> Value {
    let meta = json!({meta::key::PROTOCOL_VERSION: version, meta::key::CLIENT_CAPABILITIES: {}});
    json!({"jsonrpc":"2.0","id":1,"method":method.name(),"params":{"name":"add","_meta":meta}})
}

fn send(connection: &mut Connection, message: &Value) -> Option<Value> {
    connection.handle_message(Moment::ORIGIN, message.to_string().as_bytes());
    connection.poll_transmit().map(|transmit| serde_json::from_slice(&transmit.body).unwrap())
}

fn names() -> Value {
    Revision::stateless().iter().map(|revision| revision.as_str()).collect()
}

#[test]
#[cfg(future_revision)]
fn there_is_an_added_revision() {
    assert_eq!(names(), json!(["2026-07-28", "2999-12-31"]));
    assert_eq!(Revision::LATEST.as_str(), "2999-12-31");
}

#[test]
fn a_server_offers_every_stateless_revision_and_no_other() {
    for revision in Revision::stateless() {
        let response = send(&mut server(), &request(Method::Discover, revision.as_str())).unwrap();
        assert_eq!(response["result"]["supportedVersions"], names());
    }
    for unsupported in ["1999-01-01", Revision::LATEST_STATEFUL.as_str()] {
        let response = send(&mut server(), &request(Method::ListTools, unsupported)).unwrap();
        assert_eq!(response["error"]["code"], code::UNSUPPORTED_VERSION);
        assert_eq!(response["error"]["data"]["supported"], names());
    }
}

#[test]
fn requests_of_every_stateless_revision_are_served_on_one_connection() {
    let mut connection = server();
    for &revision in Revision::stateless() {
        assert_eq!(send(&mut connection, &request(Method::CallTool, revision.as_str())), None);
        let Some(ConnectionEvent::Start(started)) = connection.poll_event() else {
            panic!("not started in {revision}")
        };
        assert_eq!(started.peer.revision, revision);
        let cancel = json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}});
        send(&mut connection, &cancel);
        while connection.poll_event().is_some() {}
    }
}

#[test]
fn methods_that_stateless_revisions_lack_do_not_exist() {
    for revision in Revision::stateless() {
        for method in [Method::Ping, Method::Initialize, Method::Subscribe, Method::SetLevel] {
            let response = send(&mut server(), &request(method, revision.as_str())).unwrap();
            assert_eq!(response["error"]["code"], code::METHOD_NOT_FOUND, "{method} in {revision}");
        }
    }
}

#[test]
fn a_stateless_revision_is_not_negotiated_in_a_handshake() {
    for revision in Revision::stateless() {
        let response = send(
            &mut server(),
            &json!({"jsonrpc":"2.0","id":1,"method":"initialize","params":{
                "protocolVersion":revision,"capabilities":{},"clientInfo":{"name":"client","version":"1"}}}),
        );
        assert_eq!(response.unwrap()["result"]["protocolVersion"], Revision::LATEST_STATEFUL.as_str());
    }
}

#[test]
fn a_client_calls_in_the_revision_that_it_opened() {
    for &revision in Revision::stateless() {
        let (mut connection, common_members) = client();
        let mut peer = PeerInfo::new(revision);
        peer.server_capabilities = ServerCapabilities::new().with_tools(true);
        connection.open_stateless(peer);
        let params = params_text(revision, &EmptyParams::default(), &common_members).ok();
        connection.call(Moment::ORIGIN, CallKey::new(1), Call::new(Method::ListTools, params)).unwrap();
        let sent: Value = serde_json::from_slice(&connection.poll_transmit().unwrap().body).unwrap();
        assert_eq!(sent["params"]["_meta"][meta::key::PROTOCOL_VERSION], revision.as_str());
        assert!(connection.call(Moment::ORIGIN, CallKey::new(2), Call::new(Method::Ping, None)).is_err());
    }
}

#[test]
fn headers_of_every_stateless_revision_are_compared_with_the_body() {
    for revision in Revision::stateless() {
        let body = request(Method::CallTool, revision.as_str()).to_string();
        let message = envelope::read_text(&body, 64).unwrap();
        let version = (name::PROTOCOL_VERSION, revision.as_str());
        let all = [version, (name::METHOD, "tools/call"), (name::NAME, "add")];
        assert_eq!(HttpSessionMode::of(&all[..], &message), HttpSessionMode::Stateless);
        let Message::Request { method, params, .. } = message else { panic!("{body}") };
        assert_eq!(headers::check(&all[..], &method, &params), Ok(()));
        for missing in 0..all.len() {
            let mut fewer = all.to_vec();
            fewer.remove(missing);
            let refused = headers::check(&fewer[..], &method, &params).unwrap_err();
            assert_eq!(refused.error().code, code::HEADER_MISMATCH);
        }
    }
}
